// Package volume gives the local cluster dynamic volumes that behave like disks.
//
// One process serves all nodes, because they share the machine's file system. A
// volume is a sparse file with a file system in it, mounted through a loop device, so
// that its size is enforced: a volume can run full, as disks do. It is a PV of
// type local, tied to the node for which the scheduler asked for it.
//
//	ROOT/<pv>/disk          the sparse file; it exists only once it holds a file system
//	ROOT/<pv>/mnt           where it is mounted
//	ROOT/<pv>/mnt/volume    what the Pod sees
//
// The Pod sees a directory inside the file system and not its root: when a
// volume is not mounted (the machine was restarted, the provisioner not yet),
// the path does not exist and the kubelet waits, where a Pod would otherwise
// begin with an empty directory on the machine's disk.
//
// Without loop devices (some containers) volumes are plain directories and their
// sizes are not enforced; the log says so.
//
// At rest the process writes nothing to the API. It knows nothing of how the
// cluster is made; a kubeconfig and a directory are all it needs.
package volume

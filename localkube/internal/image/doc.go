// Package image makes container images without a registry and without a
// container engine, and brings them to the nodes of the local cluster.
//
// An image is one tar in the OCI image layout: a root file system as a layer, a
// config, a manifest and an index that names it. containerd imports such a tar
// as it is, and Push sends the same bytes to a real registry.
//
// Some images are named after official ones (docker.io/library/postgres:17).
// They are NOT the official images: in the local cluster, which has no
// registry, they stand in for them. They are made of Debian's packages and laid
// out alike, so that what works with the one works with the other. Push never
// sends them anywhere under those names, because --registry replaces the host.
//
// Everything made is cached by content: the file name holds a hash of the recipe
// and its arguments, so an existing file is right by definition. To those of
// Debian's packages belong the versions that its archives offer; they are asked
// once a day.
//
// The package knows nothing of Kubernetes or of the cluster: a node is a name
// and a containerd socket.
package image

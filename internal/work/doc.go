// Package work has the processes that run in Pods of their own and end, or serve one folder: they take, restore and
// verify backups, make room in an archive, serve one that lies on a volume, set up a new database, and do what is left
// after a change of the image. Each reads files that are mounted, does its work, and leaves a result as the termination
// message of its container. It asks no Kubernetes API. What annexes do in Pods is in folders of their own, and what all
// kinds of work share is in package pod. internal/cli/process has the verbs by which Pods call it.
package work

// Package backup archives WAL, takes base backups, and finds the way back. The
// words and the layout are those of docs/archive.md. It knows no Kubernetes.
package backup

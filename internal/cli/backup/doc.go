// Package backup is `toban backup`: it takes a base backup.
package backup

// Package psql is `toban psql`: a session with a server of a SampleDB, in its Pod.
package psql

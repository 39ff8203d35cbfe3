// Package status has the verbs that show what a SampleDB is and does now: status, which asks the servers too, and top.
package status

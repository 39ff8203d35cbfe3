// Package report is `toban report`: it writes all that is known of a SampleDB into a file for those who help, without
// secrets. What other verbs show of it is given to it.
package report

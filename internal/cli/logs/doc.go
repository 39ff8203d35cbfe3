// Package logs is `toban logs`: what the instances of a SampleDB have logged, merged by time.
package logs

// Package drill is `toban drill`: it has a SampleDB broken on purpose, and reports what clients have seen.
package drill

// Package cli has the verbs of the toban binary, one file each. A verb reads its
// flags and files, puts the parts together and runs them; what is done
// is elsewhere.
package cli

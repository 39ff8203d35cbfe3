// Package show is how a verb speaks with a person or a program: its answer as text, JSON or YAML, words for times and
// sizes, the terminal, and a question before something is lost. It knows no cluster.
package show

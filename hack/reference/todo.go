package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"

	"toban.dev/hack/conditions"
)

// todoFile is what the web console says about conditions: to each condition and reason what the user does.
const todoFile = "internal/cli/console/todo.json"

// restOfHeading is what a heading says after the names of conditions: "Archiving of a database that is stopped".
var restOfHeading = regexp.MustCompile(`(,| of| that| in) .*`)

// writeTodo writes that file from the comments of the reasons.
func writeTodo(path string) error {
	_, groups, err := conditions.Read(path)
	if err != nil {
		return err //nolint:wrapcheck // it says of which file
	}
	todo := map[string]map[string]string{}
	for _, g := range groups {
		of := restOfHeading.ReplaceAllString(strings.TrimPrefix(g.Heading, "Reasons of "), "")
		for condition := range strings.SplitSeq(of, " and ") {
			if todo[condition] == nil {
				todo[condition] = map[string]string{}
			}
			for _, r := range g.Constants {
				todo[condition][r.Value] = r.Todo
			}
		}
	}
	content, err := json.MarshalIndent(todo, "", " ")
	if err != nil {
		return fmt.Errorf("write what to do as JSON: %w", err)
	}
	if err := os.WriteFile(todoFile, append(content, '\n'), 0o644); err != nil { //nolint:gosec // it is no secret
		return fmt.Errorf("write what to do: %w", err)
	}
	return nil
}

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// ownSBOM is sbom of bin/toban, unless another program is named.
func ownSBOM(ctx context.Context, program, version, file string) error {
	program, file = cmp.Or(program, "bin/toban"), cmp.Or(file, "bin/toban.cdx.json")
	if version == "" {
		says, err := output(ctx, program, "version")
		if err != nil {
			return err
		}
		words := strings.Fields(says)
		if len(words) < 2 {
			return fmt.Errorf("%s does not say its version: %q", program, says)
		}
		version = words[1]
	}
	return sbom(ctx, program, version, file)
}

// sbom writes what a program is made of, in the format CycloneDX, read from the binary itself. The same binary gives
// the same file: there is no time in it and no serial number.
func sbom(ctx context.Context, program, version, file string) error {
	lists, err := tool(ctx, "cyclonedx-gomod")
	if err != nil {
		return err
	}
	says, err := output(ctx, lists, "bin", "-json", "-std", "-noserial", "-version", version, program)
	if err != nil {
		return err
	}
	text, modules, err := withoutTime(says)
	if err != nil {
		return fmt.Errorf("list what %s is made of: %w", program, err)
	}
	if err := writeFile(file, text); err != nil {
		return fmt.Errorf("write what %s is made of: %w", program, err)
	}
	fmt.Printf("%s: %d modules\n", file, modules)
	return nil
}

// withoutTime is a list of modules without what differs from one making to the next, in the order of its keys.
func withoutTime(list string) (text []byte, modules int, err error) {
	var parts map[string]any
	if err := json.Unmarshal([]byte(list), &parts); err != nil {
		return nil, 0, fmt.Errorf("understand the list: %w", err)
	}
	components, _ := parts["components"].([]any)
	if len(components) == 0 {
		return nil, 0, fmt.Errorf("it has no modules")
	}
	if metadata, is := parts["metadata"].(map[string]any); is {
		delete(metadata, "timestamp")
		tools, _ := metadata["tools"].([]any)
		for _, t := range tools {
			if t, is := t.(map[string]any); is {
				delete(t, "hashes")
			}
		}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(parts); err != nil {
		return nil, 0, fmt.Errorf("write the list: %w", err)
	}
	return out.Bytes(), len(components), nil
}

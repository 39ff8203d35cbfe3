package desired

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired/desiredtest"
)

// whole compares objects with the golden file of a name, which has all of them.
func whole(t *testing.T, name string, got []client.Object) {
	t.Helper()
	var out bytes.Buffer
	for _, object := range got {
		checkName(t, object)
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	desiredtest.Compare(t, filepath.Join("testdata", name+".yaml"), out.Bytes())
}

// base are objects of which all are in a golden file.
type base struct {
	file    string
	objects []client.Object
	// short is the name of whose objects these are.
	short string
}

// longest is the longest name that a SampleDB and a PostgreSQL can have.
var longest = strings.Repeat("n", naming.MaxName)

// different compares objects with the golden file of a name, which has only what differs from the base: so a change of
// all objects changes only the files that have all. The longest name is written as the short one.
func (from base) different(t *testing.T, name string, got []client.Object) {
	t.Helper()
	for _, object := range got {
		checkName(t, object)
	}
	b, g := fieldsOf(t, from.objects, from.short), fieldsOf(t, got, from.short)
	out := fmt.Appendf(nil, "# What differs from %s.yaml: - is there, + is here.\n", from.file)
	for _, object := range union(b, g) {
		before, here := b[object], g[object]
		if here == nil {
			out = fmt.Appendf(out, "\n- %s\n", object)
			continue
		}
		var lines []byte
		for _, field := range union(before, here) {
			was, had := before[field]
			is, has := here[field]
			if had && (!has || was != is) {
				lines = fmt.Appendf(lines, "- %s = %s\n", field, was)
			}
			if has && (!had || was != is) {
				lines = fmt.Appendf(lines, "+ %s = %s\n", field, is)
			}
		}
		if len(lines) > 0 {
			out = append(fmt.Appendf(out, "\n%s\n", object), lines...)
		}
	}
	desiredtest.Compare(t, filepath.Join("testdata", name+".diff"), out)
}

// union are the keys of both, in order.
func union[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// hashes are the ends of names that follow from the content.
var hashes = regexp.MustCompile(`-[0-9a-f]{8,}`)

// fieldsOf are the fields of objects, by the kind and the name of an object and the path of a field.
func fieldsOf(t *testing.T, objects []client.Object, short string) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte(longest), []byte(short))
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		name := strings.ReplaceAll(object.GetName(), longest, short)
		key := fmt.Sprintf("%T %s", object, hashes.ReplaceAllString(name, "-HASH"))
		fields := map[string]string{}
		addFields(fields, "", value)
		for all[key] != nil { // their hashes differ
			key += " and another"
		}
		all[key] = fields
	}
	return all
}

// addFields adds the fields of a value. What has a name in a list is found by it, and the order is a field of its own;
// a text that is JSON has fields, and one with several lines is a field for each.
func addFields(fields map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			addFields(fields, path+"."+key, inner)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		var order []string
		for i, inner := range v {
			key := fmt.Sprint(i)
			if m, is := inner.(map[string]any); is && m["name"] != nil {
				key = fmt.Sprint(m["name"])
				order = append(order, key)
			}
			addFields(fields, path+"["+key+"]", inner)
		}
		if len(order) > 0 {
			fields[path+"[]"] = strings.Join(order, " ")
		}
		if len(v) > 0 {
			return
		}
	case string:
		var inner any
		if strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &inner) == nil {
			addFields(fields, path, inner)
			return
		}
		if lines := strings.Split(v, "\n"); len(lines) > 2 {
			for i, line := range lines {
				fields[fmt.Sprintf("%s:%03d", path, i+1)] = line
			}
			return
		}
	}
	text, _ := json.Marshal(value) //nolint:errchkjson // it was read from JSON
	fields[path] = string(text)
}

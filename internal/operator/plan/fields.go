package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "toban.dev/api/v1"
)

// object is a value of JSON that has fields.
type object = map[string]any

// difference is a field that changes, with what it takes to change nothing else.
type difference struct {
	Field
	keys  []string // the keys to it
	after any      // its value then, nil where it is not given
}

// undivided are the fields that make sense only as a whole.
var undivided = []string{"restore", "restoreFrom", "init"}

// pathParameters has a field for each parameter, also where there were none.
const pathParameters = "postgresql.parameters"

// changed are the fields in which two specs differ, sorted. A list is one field, and so is what only one of them has.
func changed(before, after v1.SampleDBSpec) ([]difference, error) {
	was, err := tree(before)
	if err != nil {
		return nil, err
	}
	is, err := tree(after)
	if err != nil {
		return nil, err
	}
	return differences(nil, was, is), nil
}

func differences(above []string, was, is object) (out []difference) {
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		before, after := was[key], is[key]
		if reflect.DeepEqual(before, after) {
			continue
		}
		keys := append(slices.Clone(above), key)
		path := strings.Join(keys, ".")
		a, hadFields := before.(object)
		b, hasFields := after.(object)
		if hadFields && hasFields && !slices.Contains(undivided, path) || path == pathParameters {
			out = append(out, differences(keys, orEmpty(a), b)...)
			continue
		}
		out = append(out, difference{Field{path, text(before), text(after)}, keys, after})
	}
	return out
}

// orEmpty is an object to which entries may be added.
func orEmpty(o object) object {
	if o == nil {
		return object{}
	}
	return o
}

// alone is a spec in which this field has changed, and nothing else.
func (d difference) alone(before v1.SampleDBSpec) (v1.SampleDBSpec, error) {
	whole, err := tree(before)
	if err != nil {
		return before, err
	}
	above := whole
	for _, key := range d.keys[:len(d.keys)-1] {
		below, is := above[key].(object)
		if !is {
			below = object{}
			above[key] = below
		}
		above = below
	}
	if last := d.keys[len(d.keys)-1]; d.after == nil {
		delete(above, last)
	} else {
		above[last] = d.after
	}
	var out v1.SampleDBSpec
	content, err := json.Marshal(whole)
	if err == nil {
		err = json.Unmarshal(content, &out)
	}
	if err != nil {
		return out, fmt.Errorf("change only spec.%s: %w", d.Path, err)
	}
	return out, nil
}

// tree is a spec as JSON has it.
func tree(spec v1.SampleDBSpec) (object, error) {
	content, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("write the spec as JSON: %w", err)
	}
	var out object
	if err := json.Unmarshal(content, &out); err != nil {
		return nil, fmt.Errorf("read the spec as JSON: %w", err)
	}
	return out, nil
}

// text is a value for people: a string as it is, all else as JSON, "" for none.
func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value) // it came from JSON
	}
	return string(content)
}

package apply

import (
	"maps"
	"testing"
)

func TestContainsAsksOnlyForWhatIsWanted(t *testing.T) {
	type m = map[string]any
	for name, c := range map[string]struct {
		have, want any
		contains   bool
	}{
		"a default that the server has set": {m{"a": "x", "default": int64(1)}, m{"a": "x"}, true},
		"a changed value":                   {m{"a": "y"}, m{"a": "x"}, false},
		"a missing value":                   {m{}, m{"a": "x"}, false},
		"an added item":                     {m{"l": []any{"x", "y"}}, m{"l": []any{"x"}}, false},
		"a default inside an item": {
			m{"l": []any{m{"p": int64(1), "d": true}}}, m{"l": []any{m{"p": int64(1)}}}, true,
		},
		"an empty map where there is none":  {m{}, m{"a": m{}}, true},
		"an empty list where there is none": {m{}, m{"a": []any{}}, true},
		"another owner besides ours": {
			m{"ownerReferences": []any{m{"uid": "o"}, m{"uid": "u"}}}, m{"ownerReferences": []any{m{"uid": "u"}}}, true,
		},
		"our owner is gone": {
			m{"ownerReferences": []any{m{"uid": "o"}}}, m{"ownerReferences": []any{m{"uid": "u"}}}, false,
		},
		"a text where a map is wanted": {m{"a": "x"}, m{"a": m{"b": "c"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := contains(c.have, c.want); got != c.contains {
				t.Errorf("contains = %v, want %v", got, c.contains)
			}
		})
	}
}

// An object that is ours as a whole has no item that somebody else has put into a list of it.
func TestWhatOthersAddToListsIsTakenOut(t *testing.T) {
	type m = map[string]any
	variable := func(name string) m { return m{"name": name, "value": "1"} }
	want := m{"containers": []any{m{"name": "app", "env": []any{variable("A")}}}, "labels": m{"a": "x"}}
	container := func(more m) m {
		out := m{"name": "app", "env": []any{variable("A")}, "terminationMessagePath": "/dev/termination-log"}
		maps.Copy(out, more)
		return out
	}
	spec := func(more m, containers ...any) m {
		out := m{"containers": containers, "labels": m{"a": "x"}, "restartPolicy": "Always"}
		maps.Copy(out, more)
		return out
	}
	for name, c := range map[string]struct {
		have m
		more bool
	}{
		"only defaults":                    {spec(nil, container(nil)), false},
		"a variable where there are some":  {spec(nil, container(m{"env": []any{variable("A"), variable("B")}})), true},
		"an argument where there are none": {spec(nil, container(m{"args": []any{"--debug"}})), true},
		"a container":                      {spec(nil, container(nil), m{"name": "spy"}), true},
		"a volume where there are none":    {spec(m{"volumes": []any{m{"name": "v"}}}, container(nil)), true},
		"an empty list":                    {spec(m{"volumes": []any{}}, container(nil)), false},
		"a label, which is in no list":     {spec(m{"labels": m{"a": "x", "b": "y"}}, container(nil)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := !contains(c.have, want) || hasMore(c.have, want); got != c.more {
				t.Fatalf("it has more: %v, want %v", got, c.more)
			}
			after := overlay(c.have, want)
			if !contains(after, want) || hasMore(after, want) {
				t.Errorf("after it: %v", after)
			}
			if kept, ok := after.(m); !ok || kept["restartPolicy"] != "Always" {
				t.Errorf("a default is gone: %v", after)
			}
		})
	}
}

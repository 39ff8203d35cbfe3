package apply

import "testing"

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
		"a default inside an item":          {m{"l": []any{m{"p": int64(1), "d": true}}}, m{"l": []any{m{"p": int64(1)}}}, true},
		"an empty map where there is none":  {m{}, m{"a": m{}}, true},
		"an empty list where there is none": {m{}, m{"a": []any{}}, true},
		"another owner besides ours":        {m{"ownerReferences": []any{m{"uid": "o"}, m{"uid": "u"}}}, m{"ownerReferences": []any{m{"uid": "u"}}}, true},
		"our owner is gone":                 {m{"ownerReferences": []any{m{"uid": "o"}}}, m{"ownerReferences": []any{m{"uid": "u"}}}, false},
		"a text where a map is wanted":      {m{"a": "x"}, m{"a": m{"b": "c"}}, false},
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
	want := m{"containers": []any{m{"name": "app", "env": []any{m{"name": "A", "value": "1"}}}}, "labels": m{"a": "x"}}
	clone := func(change func(m)) m {
		container := m{"name": "app", "env": []any{m{"name": "A", "value": "1"}}, "terminationMessagePath": "/dev/termination-log"}
		have := m{"containers": []any{container}, "labels": m{"a": "x"}, "restartPolicy": "Always"}
		change(container)
		if added, ok := container["added"].(func(m)); ok {
			delete(container, "added")
			added(have)
		}
		return have
	}
	spec := func(f func(m)) func(m) { return func(container m) { container["added"] = f } }
	for name, c := range map[string]struct {
		change func(m)
		more   bool
	}{
		"only defaults":                    {func(m) {}, false},
		"a variable where there are some":  {func(c m) { c["env"] = append(c["env"].([]any), m{"name": "B", "value": "2"}) }, true},
		"an argument where there are none": {func(c m) { c["args"] = []any{"--debug"} }, true},
		"a container":                      {spec(func(s m) { s["containers"] = append(s["containers"].([]any), m{"name": "spy"}) }), true},
		"a volume where there are none":    {spec(func(s m) { s["volumes"] = []any{m{"name": "v"}} }), true},
		"an empty list":                    {spec(func(s m) { s["volumes"] = []any{} }), false},
		"a label, which is in no list":     {spec(func(s m) { s["labels"].(m)["b"] = "y" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			have := clone(c.change)
			if got := !contains(have, want) || hasMore(have, want); got != c.more {
				t.Fatalf("it has more: %v, want %v", got, c.more)
			}
			after := overlay(have, want)
			if !contains(after, want) || hasMore(after, want) {
				t.Errorf("after it: %v", after)
			}
			if kept, ok := after.(m); !ok || kept["restartPolicy"] != "Always" {
				t.Errorf("a default is gone: %v", after)
			}
		})
	}
}

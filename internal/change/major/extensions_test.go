package major

import "testing"

func TestTheFateOfAnExtension(t *testing.T) {
	for name, c := range map[string]struct {
		scripts        []string
		installed, has string
		want           extensionFate
	}{
		"one script leads there":     {[]string{"1.8", "1.8--1.9"}, "1.8", "1.9", canBeUpdated},
		"several do":                 {[]string{"1.0", "1.8--1.9", "1.9--2.0", "2.0--1.9"}, "1.8", "2.0", canBeUpdated},
		"one leads back":             {[]string{"1.8", "1.9--1.8"}, "1.9", "1.8", canBeUpdated},
		"its scripts are not known":  {nil, "1.9", "1.8", canBeUpdated},
		"it is older, and unknown":   {[]string{"1.7", "1.7--1.8"}, "1.9", "1.8", isUnknown},
		"1.10 is newer than 1.9":     {[]string{"1.8", "1.8--1.9"}, "1.10", "1.9", isUnknown},
		"1.9.1 is newer than 1.9":    {[]string{"1.9"}, "1.9.1", "1.9", isUnknown},
		"it is older, and known":     {[]string{"1.8", "1.9"}, "1.9", "1.8", stays},
		"it is newer, without a way": {[]string{"2.0", "1.9--2.0"}, "1.8", "2.0", stays},
		"versions without an order":  {[]string{"b"}, "c", "b", stays},
		"no number":                  {[]string{"1.0"}, "1.1dev", "1.0", stays},
	} {
		if got := fateOf(c.scripts, c.installed, c.has); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

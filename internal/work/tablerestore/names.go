package tablerestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
	"unicode/utf8"

	"toban.dev/internal/postgres/sql"
)

// suffixes are those that fit into every name, and need no quotes.
var suffixes = regexp.MustCompile(`^[a-z0-9_]{1,40}$`)

// named is the name of what is restored beside something. The name is shortened, the suffix never.
func named(name, suffix string) string {
	return shortened(name, sql.MaxName-len(suffix)-1) + "_" + suffix
}

// shortened cuts a name where a character begins.
func shortened(name string, most int) string {
	if len(name) <= most {
		return name
	}
	for most > 0 && !utf8.RuneStart(name[most]) {
		most--
	}
	return name[:most]
}

// keptSuffix is that of what a restore replaces.
func (o *Options) keptSuffix() string {
	if rest, is := strings.CutPrefix(o.Suffix, "restored"); is {
		return "before" + rest
	}
	return "before_" + o.Suffix
}

// stageOf is the schema in which the tables of a schema are until all is there.
func (o *Options) stageOf(schema string) string {
	return fmt.Sprintf("toban_%s_%08x", o.Suffix, short(schema))
}

// loaderName is that of the role of this run. Roles are those of all databases.
func (o *Options) loaderName() string {
	return fmt.Sprintf("toban_load_%s_%08x", o.Suffix, short(o.Database))
}

// actorName is how the names of the roles begin that act as owners. Their numbers have room behind it.
func (o *Options) actorName() string {
	return fmt.Sprintf("toban_load_%s_%08x", o.Suffix[:min(len(o.Suffix), 30)], short(o.Suffix+" "+o.Database))
}

// short is a number for a name that is too long.
func short(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum32()
}

// unique gives each object of a schema a name of its own, also where two are the same once shortened.
type unique map[string]bool

func (u unique) named(name, suffix string) string {
	out := named(name, suffix)
	for n := 2; u[out]; n++ {
		out = named(fmt.Sprintf("%s_%d", shortened(name, sql.MaxName-len(suffix)-6), n), suffix)
	}
	u[out] = true
	return out
}

// relation is a table by its name.
type relation struct{ Schema, Name string }

func (r relation) String() string { return r.Schema + "." + r.Name }
func (r relation) sql() string    { return sql.Quote(r.Schema, r.Name) }

// parseTable reads "schema.name" or "name". Parts in double quotes are as they are, and others too: a name that was
// made without quotes has no capitals, and one that has them was made with quotes.
func parseTable(text string) (relation, error) {
	parts, err := split(text)
	switch {
	case err != nil:
		return relation{}, refuse("%q is no name of a table: %w", text, err)
	case len(parts) == 1:
		return relation{"public", parts[0]}, nil
	case len(parts) == 2:
		return relation{parts[0], parts[1]}, nil
	}
	return relation{}, refuse("%q is no name of a table: write schema.name, and in double quotes what has a dot in it",
		text)
}

// split cuts a name at the dots that are not in double quotes.
func split(text string) (parts []string, err error) {
	rest := text
	for {
		var part string
		if strings.HasPrefix(rest, `"`) {
			part, rest, err = unquote(rest[1:])
		} else {
			at := strings.IndexByte(rest, '.')
			if at < 0 {
				at = len(rest)
			}
			part, rest = rest[:at], rest[at:]
		}
		if err == nil && part == "" {
			err = errors.New("a part of it is empty")
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
		if rest == "" {
			return parts, nil
		}
		if rest[0] != '.' {
			return nil, errors.New("a dot must follow a closing quote")
		}
		rest = rest[1:]
	}
}

func unquote(text string) (part, rest string, err error) {
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			part += text[i : i+1]
			continue
		}
		if i+1 < len(text) && text[i+1] == '"' {
			part += `"`
			i++
			continue
		}
		return part, text[i+1:], nil
	}
	return "", "", errors.New("a quote is not closed")
}

// mark is what a comment of ours says: to the next run, and to people.
type mark struct {
	// State is one of those below.
	State string `json:"state"`
	// Object is what has come of it.
	Object *Object `json:"object,omitempty"`
	// Comment is the object's own comment in the copy, where that is not in front of the mark.
	Comment string `json:"comment,omitempty"`
}

// The states of what has a mark.
const (
	stateWork    = "being restored"
	stateArrived = "restored"
	stateKept    = "replaced" // of a table that keeps rows: those are in it
)

func (o *Options) markPrefix() string { return "toban " + o.Suffix + ": " }

// comment is a comment with a mark, behind what the object's own says.
func (o *Options) comment(own string, m mark) string {
	text, _ := json.Marshal(m) //nolint:errchkjson // numbers and texts
	if own != "" {
		own += "\n"
	}
	return own + o.markPrefix() + string(text)
}

// readMark reads the mark of this run in a comment, and what is in front of it. It is nil where there is none.
func (o *Options) readMark(comment *string) (m *mark, own string) {
	if comment == nil {
		return nil, ""
	}
	own, last := "", *comment
	if at := strings.LastIndexByte(*comment, '\n'); at >= 0 {
		own, last = (*comment)[:at], (*comment)[at+1:]
	}
	text, is := strings.CutPrefix(last, o.markPrefix())
	m = &mark{}
	if !is || json.Unmarshal([]byte(text), m) != nil {
		return nil, *comment
	}
	return m, own
}

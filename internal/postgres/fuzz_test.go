package postgres

import (
	"strconv"
	"strings"
	"testing"
)

// What pg_controldata says, of a control file that may be spoilt.
func FuzzControl(f *testing.F) {
	f.Add("Database system identifier:           7312345678901234567\nDatabase cluster state:   in production\n" +
		"Latest checkpoint's TimeLineID:       1\nmax_connections setting:              100\n" +
		"Mock authentication nonce:            0011\n")
	f.Add("Database system identifier:\nLatest checkpoint's TimeLineID: -1")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := parseControl(text); err == nil && c.SystemIdentifier == "" {
			t.Errorf("%q has no system identifier", text)
		}
	})
}

// Whatever a user has as the value of a parameter: it is that value which PostgreSQL reads, but for line breaks, and
// none of the agent's own parameters changes.
func FuzzParameters(f *testing.F) {
	for _, value := range []string{"x", "'", `\'`, "a'\nfsync = off\n'", "\\\n", "''", "\r", "é\x00", `\\'`} {
		f.Add("application_name", value)
	}
	f.Add("FSYNC", "off")
	f.Add("work_mem", "'; fsync = 'off")
	s := &Server{Run: "/run", Port: 5432, Programs: Programs{Major: 17}}
	own := readConf(s.postgresqlConf(Settings{}))
	f.Fuzz(func(t *testing.T, name, value string) {
		if !parameterName(name) {
			return // the rule of the CRD refuses it
		}
		read := readConf(s.postgresqlConf(Settings{Parameters: map[string]string{name: value}}))
		key := strings.ToLower(name)
		if _, ours := own[key]; !ours && !Owned(name) {
			if want := strings.NewReplacer("\n", " ", "\r", " ").Replace(value); read[key] != want {
				t.Errorf("%s is %q, not %q", name, read[key], want)
			}
			delete(read, key)
		}
		for name, value := range own {
			if read[name] != value {
				t.Errorf("%s is %q, not %q", name, read[name], value)
			}
		}
		if len(read) != len(own) {
			t.Errorf("there are other parameters: %v", read)
		}
	})
}

func parameterName(name string) bool {
	for i := range len(name) {
		switch c := name[i] | 0x20; { // in lower case
		case c >= 'a' && c <= 'z', name[i] == '_', i > 0 && (name[i] >= '0' && name[i] <= '9' || name[i] == '.'):
		default:
			return false
		}
	}
	return name != ""
}

// readConf reads a configuration file by PostgreSQL's rules (guc-file.l): a value in quotes ends at a quote that is
// neither doubled nor behind a backslash, and none goes beyond its line.
func readConf(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		name, quoted, ok := strings.Cut(line, " = ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		var value strings.Builder
		rest := strings.TrimPrefix(quoted, "'")
		for len(rest) > 0 && (rest[0] != '\'' || len(rest) > 1 && rest[1] == '\'') {
			if rest[0] == '\\' || rest[0] == '\'' {
				rest = rest[1:]
			}
			if len(rest) > 0 {
				value.WriteByte(rest[0])
				rest = rest[1:]
			}
		}
		all[name] = value.String()
		if rest != "'" {
			all["what follows "+name] = rest
		}
	}
	return all
}

// Lines of pg_hba.conf that a user adds come behind our own, which stay as they are, and before the last.
func FuzzHBA(f *testing.F) {
	for _, line := range []string{"host all all all md5", "x\\", "\nlocal all all trust", "#", "@/etc/passwd", ""} {
		f.Add(line, true)
	}
	before, after, _ := strings.Cut(hbaConf(Settings{HBA: []string{"HERE"}}), "HERE\n")
	f.Fuzz(func(t *testing.T, line string, closed bool) {
		text := hbaConf(Settings{HBA: []string{line}, Closed: closed})
		if !strings.HasPrefix(text, before) || !strings.HasSuffix(text, after) {
			t.Errorf("our own lines have changed:\n%s", text)
		}
		if theirs := text[len(before):]; closed && !strings.HasPrefix(theirs, "host all all all reject\n") {
			t.Errorf("a client gets in that should not:\n%s", text)
		}
	})
}

// /proc has whatever a process calls itself.
func FuzzProcess(f *testing.F) {
	f.Add("7 (a) b) S 1 7 7 0 -1 4194560 0", "Name:\tx\nState:\tD (disk sleep)\nSigPnd:\t0000000000000100\n")
	f.Add(")", "State")
	f.Fuzz(func(_ *testing.T, stat, status string) {
		isExiting(stat)
		begun(stat)
		isKilled(status)
	})
}

// The link to a term's key is known by its name, which is that of no other term.
func FuzzKeyLink(f *testing.F) {
	for _, name := range []string{keyLink(7), "replication-18446744073709551615.key", "replication-+1.key",
		"replication-01.key"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if term, ok := linkTerm(name); ok {
			again, ok := linkTerm(keyLink(term))
			if !ok || again != term || !strings.Contains(name, strconv.FormatUint(term, 10)) {
				t.Errorf("%q is of term %d, whose link is %s", name, term, keyLink(term))
			}
		}
	})
}

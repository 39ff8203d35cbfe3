package main

import (
	"bytes"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

const root = "../.."

// made is the site as make docs makes it. It is built once, since no test changes it.
var made = map[string][]byte{}

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "site")
	if err != nil {
		panic(err)
	}
	if _, err := build(root, folder, ""); err != nil {
		panic(err)
	}
	made = files(folder)
	_ = os.RemoveAll(folder) // a temporary folder; the tests don't need it any more
	os.Exit(m.Run())
}

func files(folder string) map[string][]byte {
	all := map[string][]byte{}
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, file)
		if err == nil {
			all[name], err = os.ReadFile(file)
		}
		return err
	})
	if err != nil {
		panic(err)
	}
	return all
}

func TestEveryPageIsInTheNavigation(t *testing.T) {
	listed := map[string]int{}
	for _, g := range navigation {
		for _, e := range g.pages {
			listed[e.source]++
		}
	}
	there := []string{"README.md", "README.ja.md"}
	for name := range files(root + "/docs") {
		if strings.HasSuffix(name, ".md") {
			there = append(there, "docs/"+name)
		}
	}
	for _, name := range there {
		if listed[name] != 1 {
			t.Errorf("%s is in the navigation %d times and not once: see navigation.go", name, listed[name])
		}
		if _, built := made[outName(name)]; !built {
			t.Errorf("%s is not in the site", name)
		}
	}
	if len(there) != len(listed) || len(there) < 30 {
		t.Errorf("there are %d pages, and %d in the navigation", len(there), len(listed))
	}
}

// Whatever a page refers to is in the site, anchors too. Only a link that somebody follows may lead elsewhere: nothing
// is loaded from outside.
func TestEverythingThatPagesReferToIsThere(t *testing.T) {
	parsed := map[string]*html.Node{}
	anchors := map[string][]string{}
	for name, content := range made {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		parsed[name] = parse(t, content)
		each(parsed[name], func(n *html.Node) {
			if id := attribute(n, "id"); id != "" {
				if slices.Contains(anchors[name], id) {
					t.Errorf("%s has the id %s twice", name, id)
				}
				anchors[name] = append(anchors[name], id)
			}
		})
	}
	checked := 0
	for name, page := range parsed {
		each(page, func(n *html.Node) {
			for _, key := range []string{"href", "src", "data-root"} {
				target := attribute(n, key)
				switch {
				case target == "" || target == "data:,": // no icon
				case n.Data == "a" && strings.HasPrefix(target, "https://"):
				case !leads(name, target, anchors) && key != "data-root":
					t.Errorf("%s refers to %s, which is not there", name, target)
				default:
					checked++
				}
			}
		})
	}
	if checked < 2000 {
		t.Errorf("only %d references were checked", checked)
	}
}

func leads(from, target string, anchors map[string][]string) bool {
	name, fragment, _ := strings.Cut(target, "#")
	fragment, err := url.PathUnescape(fragment)
	to := from
	if name != "" {
		to = path.Join(path.Dir(from), name)
	}
	_, there := made[to]
	return there && err == nil && (fragment == "" || slices.Contains(anchors[to], fragment))
}

// What an HTML parser makes of a page and writes again is the page: no tag is missing, and none is in a wrong place.
func TestPagesAreWellFormed(t *testing.T) {
	for name, content := range made {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		if have, want := tags(t, rendered(t, parse(t, content))), tags(t, content); !slices.Equal(have, want) {
			t.Errorf("%s is read as another page than was written", name)
		}
	}
}

// tags are the tags in the order in which they stand.
func tags(t *testing.T, content []byte) []string {
	t.Helper()
	var all []string
	for z := html.NewTokenizer(bytes.NewReader(content)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return all
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			all = append(all, "<"+string(name))
		case html.EndTagToken:
			name, _ := z.TagName()
			all = append(all, "</"+string(name))
		}
	}
}

func TestTheSamePagesGiveTheSameSite(t *testing.T) {
	again := t.TempDir()
	if _, err := build(root, again, ""); err != nil {
		t.Fatal(err)
	}
	second := files(again)
	if len(second) != len(made) {
		t.Errorf("the second site has %d files, the first %d", len(second), len(made))
	}
	for name, content := range made {
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s differs between two builds", name)
		}
	}
}

func TestOnlyAFormerSiteIsRemoved(t *testing.T) {
	folder := t.TempDir()
	if err := put(folder, "letters/mine.txt", []byte("dear")); err != nil {
		t.Fatal(err)
	}
	if _, err := build(root, folder, ""); err == nil {
		t.Error("a site was written over a folder with other files")
	}
	if err := put(folder, indexName, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := build(root, folder, ""); err != nil {
		t.Error(err)
	}
	if _, kept := files(folder)["letters/mine.txt"]; kept {
		t.Error("a file of the former site has stayed")
	}
}

// Nothing of the style or of the scripts is loaded from elsewhere either.
func TestStyleAndScriptsNeedNobody(t *testing.T) {
	for _, name := range []string{"style.css", "search.js"} {
		for _, word := range []string{"http:", "https:", "@import", "url(", "fetch("} {
			if bytes.Contains(made[name], []byte(word)) {
				t.Errorf("%s has %s", name, word)
			}
		}
	}
}

// A page is light, unless its text alone is long.
func TestPagesAreLight(t *testing.T) {
	const most = 100_000
	for name, content := range made {
		if !strings.HasSuffix(name, ".html") || len(content) < most {
			continue
		}
		source := filepath.Join(root, "docs", strings.TrimSuffix(name, ".html")+".md")
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if len(content) > 2*len(text) {
			t.Errorf("%s has %d bytes, and its text only %d", name, len(content), len(text))
		}
	}
}

func TestLinksToFilesThatAreNoPages(t *testing.T) {
	for repository, want := range map[string]string{
		"":                    `<p>See <code>book.go</code>.</p>`,
		"https://example.com": `<p>See <a href="https://example.com/examples/book.go"><code>book.go</code></a>.</p>`,
	} {
		if have := one(t, repository, "See [`book.go`](../examples/book.go).\n"); !strings.Contains(have, want) {
			t.Errorf("with the repository %q the page is\n%s\nwithout\n%s", repository, have, want)
		}
	}
}

// The same page is read on GitHub, so the same links have to work in both.
func TestAnchorsAreThoseOfGitHub(t *testing.T) {
	for name, of := range map[string]struct{ headings, want string }{
		"a field":                {"### `spec.init.sql[]`", "specinitsql"},
		"signs are left out":     {"## What isn't there: a \"log\"?", "what-isnt-there-a-log"},
		"a link is its words":    {"## See [the log](a.md)", "see-the-log"},
		"an underscore stays":    {"## pg_hba", "pg_hba"},
		"Japanese":               {"## バックアップと復元(英語)", "バックアップと復元英語"},
		"the same once more":     {"## Drills\n\n## Drills\n\n## Drills", "drills drills-1 drills-2"},
		"nothing between dashes": {"## a – b", "a--b"},
	} {
		p, err := small(t, "", of.headings+"\n").parse("docs/a.md")
		if err != nil {
			t.Fatal(err)
		}
		var have []string
		for _, s := range p.sections[1:] {
			have = append(have, s.anchor)
		}
		if strings.Join(have, " ") != of.want {
			t.Errorf("%s: the anchors of %q are %q, and not %s", name, of.headings, have, of.want)
		}
	}
}

// Words of an English page stay apart where a line ends before a link or code.
func TestTheEndOfALineIsASpace(t *testing.T) {
	out := one(t, "", "See\n[this page](a.md), or\n`make docs`.\n")
	if regexp.MustCompile(`(See|or)<`).MatchString(out) {
		t.Errorf("words are joined: %s", out)
	}
}

func TestHTMLInPagesIsRefused(t *testing.T) {
	s := small(t, "", "A <b>word</b>.\n")
	if _, err := s.parse("docs/a.md"); err == nil {
		t.Error("a page with HTML in it was taken")
	}
}

// small is a site with one page in docs, beside a file that is none.
func small(t *testing.T, repository, text string) *site {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{"docs/a.md": "# A\n\n" + text, "examples/book.go": "package book\n"} {
		if err := put(folder, name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return &site{root: folder, repository: repository, bySource: map[string]*page{}}
}

func one(t *testing.T, repository, text string) string {
	t.Helper()
	s := small(t, repository, text)
	p, err := s.parse("docs/a.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.relink(p); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.markdown().Renderer().Render(&out, p.raw, p.doc); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func parse(t *testing.T, content []byte) *html.Node {
	t.Helper()
	node, err := html.Parse(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func rendered(t *testing.T, node *html.Node) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := html.Render(&out, node); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func each(node *html.Node, do func(*html.Node)) {
	for n := range node.Descendants() {
		if n.Type == html.ElementNode {
			do(n)
		}
	}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

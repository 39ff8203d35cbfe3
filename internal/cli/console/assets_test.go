package console

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// assetsLimit is how large all files of the page are together at most, in bytes.
const assetsLimit = 150 << 10

func TestTheAssetsAreSmall(t *testing.T) {
	sum := int64(0)
	err := fs.WalkDir(embedded, ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		sum += info.Size()
		return err
	})
	if err != nil || sum > assetsLimit || sum == 0 {
		t.Errorf("%v: they have %d bytes, at most %d are allowed", err, sum, assetsLimit)
	}
	t.Logf("%d bytes", sum)
}

// scripts are the modules of the page, in one text.
func scripts(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("assets/*.js")
	if err != nil || len(files) < 5 {
		t.Fatal(err, files)
	}
	var all strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}

func wordsOf(t *testing.T) (out map[string]map[string]string) {
	t.Helper()
	content, err := os.ReadFile("assets/words.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	placeholder = regexp.MustCompile(`\{\w+\}`)
	fixedWord   = regexp.MustCompile(`\bt\('([a-zA-Z.]+)'`)
	madeWord    = regexp.MustCompile("\\bt\\(`([a-zA-Z.]*)\\$|named\\('([a-zA-Z]+)'|`(event)\\.\\$")
	japanese    = regexp.MustCompile(`\p{Hiragana}|\p{Katakana}|\p{Han}`)
)

// Both languages have every word, with the same values in it.
func TestBothLanguagesAreComplete(t *testing.T) {
	same := []string{"fact.version", "proof.in", "otherShort"} // names, and a value in brackets
	for key, words := range wordsOf(t) {
		en, ja := words["en"], words["ja"]
		values := func(text string) []string {
			found := placeholder.FindAllString(text, -1)
			slices.Sort(found)
			return found
		}
		switch {
		case en == "" || ja == "" || len(words) != 2:
			t.Errorf("%s is not there in both languages: %v", key, words)
		case !slices.Equal(values(en), values(ja)):
			t.Errorf("%s has other values in the other language: %q, %q", key, en, ja)
		case key == "otherLanguage":
		case !japanese.MatchString(ja) && !slices.Contains(same, key):
			t.Errorf("%s is not in Japanese: %q", key, ja)
		case japanese.MatchString(en):
			t.Errorf("%s is not in English: %q", key, en)
		}
	}
}

// Every word that the page uses is in the table, and every word of the table is used.
func TestTheWordsAreThoseOfThePage(t *testing.T) {
	words, text := wordsOf(t), scripts(t)
	used := map[string]bool{}
	for _, m := range fixedWord.FindAllStringSubmatch(text, -1) {
		if used[m[1]] = true; words[m[1]] == nil {
			t.Errorf("the page says %q, which is not in the table", m[1])
		}
	}
	var prefixes []string
	for _, m := range madeWord.FindAllStringSubmatch(text, -1) {
		prefixes = append(prefixes, strings.TrimSuffix(m[1]+m[2]+m[3], ".")+".")
	}
	for key := range words {
		made := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
		if !used[key] && !made && !strings.Contains(text, "'"+key+"'") {
			t.Errorf("nobody says %q", key)
		}
	}
}

// The page makes no HTML of texts, and asks nobody but the program.
func TestThePageMakesNoHTMLOfTexts(t *testing.T) {
	text := scripts(t)
	for _, forbidden := range []string{
		"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser",
		"https://",
	} {
		if strings.Contains(text, forbidden) {
			t.Errorf("the page uses %s", forbidden)
		}
	}
	page, err := os.ReadFile("assets/index.html")
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`(?i)<style|style=|\son[a-z]+=|<script[^>]*>[^<]`).Match(page) {
		t.Error("index.html has an inline script or style, which the policy forbids")
	}
}

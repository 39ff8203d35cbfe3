package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
)

//go:embed assets
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "assets/layout.html"))

// indexName is the file that the search reads. A folder that has it is a site.
const indexName = "search-index.js"

// longContents is how many entries a table of contents may have with those of the third level. The reference has a
// heading for each field, and its table of contents would be as long as the page.
const longContents = 60

// A view is what the layout gets.
type view struct {
	Lang, Title, Root string
	Labels            labels
	Navigation        []viewGroup
	Contents          []viewLink
	Body              template.HTML
}

type viewGroup struct {
	Title string
	Links []viewLink
}

type viewLink struct {
	Name, Target string
	Here, Deeper bool
}

// labels are the words of the layout itself.
type labels struct{ Search, None, Contents, Pages, Menu string }

var labelsOf = map[string]labels{
	"en": {
		Search: "Search (press /)", None: "Nothing was found", Contents: "On this page", Pages: "Pages",
		Menu: "All pages",
	},
	"ja": {
		Search: "検索(/ キー)", None: "見つかりません", Contents: "このページの内容", Pages: "ページ",
		Menu: "すべてのページ",
	},
}

func (s *site) write(out string) error {
	for _, p := range s.pages {
		content, err := s.render(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.source, err)
		}
		if err := put(out, p.out, content); err != nil {
			return err
		}
	}
	for _, source := range s.files {
		content, err := os.ReadFile(filepath.Join(s.root, source))
		if err != nil {
			return fmt.Errorf("read what a page links to: %w", err)
		}
		if err := put(out, outName(source), content); err != nil {
			return err
		}
	}
	return s.writeAssets(out)
}

func (s *site) writeAssets(out string) error {
	for _, name := range []string{"style.css", "search.js"} {
		content, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return fmt.Errorf("read what is built in: %w", err)
		}
		if err := put(out, name, content); err != nil {
			return err
		}
	}
	content, err := s.searchIndex()
	if err != nil {
		return err
	}
	return put(out, indexName, content)
}

func (s *site) render(p *page) ([]byte, error) {
	var body, whole bytes.Buffer
	if err := p.markdown().Renderer().Render(&body, p.raw, p.doc); err != nil {
		return nil, fmt.Errorf("render the text: %w", err)
	}
	err := layout.Execute(&whole, view{
		Lang: p.lang, Title: p.title, Root: relative(p.out, ""), Labels: labelsOf[p.lang],
		Navigation: s.navigationFor(p), Contents: contents(p),
		Body: template.HTML(scrolling(body.Bytes())), //nolint:gosec // our own pages, and goldmark escapes them
	})
	if err != nil {
		return nil, fmt.Errorf("fill the layout: %w", err)
	}
	return whole.Bytes(), nil
}

// scrolling puts each table into a box of its own, so that a wide one scrolls and the page does not.
// What looks like a tag in the text of a page is escaped, so these are tables.
func scrolling(body []byte) []byte {
	body = bytes.ReplaceAll(body, []byte("<table>"), []byte(`<div class="wide" tabindex="0"><table>`))
	return bytes.ReplaceAll(body, []byte("</table>"), []byte("</table></div>"))
}

func (s *site) navigationFor(p *page) []viewGroup {
	var all []viewGroup
	for _, g := range navigation {
		v := viewGroup{Title: g.title}
		if p.lang == "ja" {
			v.Title = g.titleJa
		}
		for _, e := range g.pages {
			to := s.bySource[e.source]
			v.Links = append(v.Links, viewLink{Name: e.name, Target: relative(p.out, to.out), Here: to == p})
		}
		all = append(all, v)
	}
	return all
}

// contents are the headings below the page's title.
func contents(p *page) []viewLink {
	all, top := []viewLink{}, []viewLink{}
	for _, s := range p.sections {
		link := viewLink{Name: s.title, Target: "#" + s.anchor, Deeper: s.level > 2}
		if s.level == 2 {
			top = append(top, link)
		}
		if s.level == 2 || s.level == 3 {
			all = append(all, link)
		}
	}
	if len(all) > longContents {
		return top
	}
	return all
}

// searchIndex is a script and not only JSON, because a page that is read from the disk may load no JSON.
func (s *site) searchIndex() ([]byte, error) {
	type index struct {
		Pages    [][2]string `json:"pages"`    // file, title
		Sections [][4]any    `json:"sections"` // page, anchor, title, text
	}
	var all index
	for i, p := range s.pages {
		all.Pages = append(all.Pages, [2]string{p.out, p.title})
		for _, section := range p.sections {
			all.Sections = append(all.Sections, [4]any{i, section.anchor, section.title, section.text})
		}
	}
	content, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("write the index: %w", err)
	}
	return fmt.Appendf(nil, "globalThis.tobanIndex = %s;\n", content), nil
}

func put(out, name string, content []byte) error {
	file := filepath.Join(out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // a site is for everyone
		return fmt.Errorf("make the folder: %w", err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // a site is for everyone
		return fmt.Errorf("write it: %w", err)
	}
	return nil
}

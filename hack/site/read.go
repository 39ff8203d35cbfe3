package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"toban.dev/hack/anchor"
)

// A site is all that is written, before it is written.
type site struct {
	root, repository string
	pages            []*page          // in the order of the navigation
	bySource         map[string]*page // by the file in the repository
	files            []string         // of docs, to copy: images and data that pages link to
}

// A page is one Markdown file.
type page struct {
	source   string // docs/reference/sampledb.md
	out      string // reference/sampledb.html
	lang     string
	title    string
	raw      []byte
	doc      ast.Node
	sections []section
}

// A section is a heading with what follows it, until the next heading. It is what the search finds.
type section struct {
	level               int
	anchor, title, text string
}

// read parses all pages of the navigation.
func read(root, repository string) (*site, error) {
	s := &site{
		root: root, repository: strings.TrimSuffix(repository, "/"),
		bySource: map[string]*page{},
	}
	for _, g := range navigation {
		for _, e := range g.pages {
			p, err := s.parse(e.source)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.source, err)
			}
			s.pages = append(s.pages, p)
			s.bySource[e.source] = p
		}
	}
	return s, nil
}

// markdown is what pages are written in: CommonMark with tables. Japanese has no spaces, so the end of a line is none
// there. That is only for Japanese pages: goldmark then leaves out every end of a line before a link or code.
func (p *page) markdown() goldmark.Markdown {
	if p.lang != "ja" {
		return goldmark.New(goldmark.WithExtensions(extension.Table))
	}
	return goldmark.New(goldmark.WithExtensions(extension.Table,
		extension.NewCJK(extension.WithEastAsianLineBreaks(extension.EastAsianLineBreaksCSS3Draft))))
}

func (s *site) parse(source string) (*page, error) {
	raw, err := os.ReadFile(filepath.Join(s.root, source))
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	p := &page{source: source, out: outName(source), lang: "en", raw: raw}
	if strings.HasSuffix(source, ".ja.md") {
		p.lang = "ja"
	}
	p.doc = p.markdown().Parser().Parse(text.NewReader(raw))
	if err := withoutHTML(p.doc); err != nil {
		return nil, err
	}
	p.sections = nameHeadings(p.doc, raw)
	if len(p.sections) == 0 || p.sections[0].level != 1 {
		return nil, errors.New("it does not begin with a heading of the first level")
	}
	p.title = p.sections[0].title
	return p, nil
}

// outName is where a page or a file of docs is in the site. The READMEs are its start pages.
func outName(source string) string {
	switch source {
	case "README.md":
		return "index.html"
	case "README.ja.md":
		return "ja.html"
	}
	source = strings.TrimPrefix(source, "docs/")
	if name, isPage := strings.CutSuffix(source, ".md"); isPage {
		return name + ".html"
	}
	return source
}

// withoutHTML removes comments. A page has no other HTML, so that it reads the same everywhere.
func withoutHTML(doc ast.Node) error {
	var comments []ast.Node
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		block, isBlock := n.(*ast.HTMLBlock)
		switch {
		case !entering:
		case isBlock && block.HTMLBlockType == ast.HTMLBlockType2:
			comments = append(comments, n)
		case isBlock || n.Kind() == ast.KindRawHTML:
			return ast.WalkStop, errors.New("it has HTML in it: write Markdown, or set it in backquotes")
		}
		return ast.WalkContinue, nil
	})
	for _, n := range comments {
		n.Parent().RemoveChild(n.Parent(), n)
	}
	if err != nil {
		return fmt.Errorf("look for HTML: %w", err)
	}
	return nil
}

// nameHeadings gives each heading the anchor that GitHub gives it, and returns the sections.
func nameHeadings(doc ast.Node, raw []byte) []section {
	var all []section
	var names anchor.Names
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, isHeading := n.(*ast.Heading)
		switch {
		case isHeading:
			title := plain(h, raw)
			name := names.Next(title)
			h.SetAttributeString("id", []byte(name))
			all = append(all, section{level: h.Level, anchor: name, title: title})
		case len(all) > 0:
			last := &all[len(all)-1]
			last.text = strings.TrimSpace(last.text + " " + plain(n, raw))
		}
	}
	return all
}

// firstJapanese is where the characters begin that are written without spaces.
const firstJapanese = '\u2e80'

// plain is the text of a node, with one space wherever there is any.
func plain(node ast.Node, raw []byte) string {
	var b strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Value(raw))
			}
			if last, _ := utf8.DecodeLastRuneInString(b.String()); n.SoftLineBreak() && last < firstJapanese {
				b.WriteByte(' ')
			}
		case *ast.AutoLink:
			if entering {
				b.Write(n.Label(raw))
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(raw))
			}
		default:
			if n.Type() == ast.TypeBlock { // a cell, an item, a paragraph
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

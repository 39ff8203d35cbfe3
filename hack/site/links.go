package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// relink changes the links of a page from files of the repository to those of the site, and adds to each heading a link
// to itself.
func (s *site) relink(p *page) error {
	for _, n := range linksOf(p.doc) {
		var err error
		switch n := n.(type) {
		case *ast.Link:
			err = s.relinkOne(p, n)
		case *ast.Image:
			n.Destination, err = s.image(p, string(n.Destination))
		}
		if err != nil {
			return err
		}
	}
	for n := p.doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, isHeading := n.(*ast.Heading); isHeading && h.Level > 1 {
			linkToItself(h)
		}
	}
	return nil
}

// linksOf are the links and images, collected before one is changed.
func linksOf(doc ast.Node) []ast.Node {
	var all []ast.Node
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if entering && (n.Kind() == ast.KindLink || n.Kind() == ast.KindImage) {
			all = append(all, n)
		}
		return ast.WalkContinue, nil
	})
	return all
}

func (s *site) relinkOne(p *page, link *ast.Link) error {
	target, err := s.target(p, string(link.Destination))
	switch {
	case err != nil:
		return err
	case target == "":
		replaceByChildren(link)
	default:
		link.Destination = []byte(target)
	}
	return nil
}

// target is where a link of a page leads in the site; nothing if the site does not have that.
func (s *site) target(p *page, link string) (string, error) {
	name, fragment, hasFragment := strings.Cut(link, "#")
	if hasFragment {
		fragment = "#" + fragment
	}
	if name == "" || strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return link, nil
	}
	source := path.Join(path.Dir(p.source), name)
	if _, err := os.Stat(filepath.Join(s.root, source)); err != nil {
		return "", fmt.Errorf("the link to %s: %w", link, err)
	}
	if to := s.bySource[source]; to != nil {
		return relative(p.out, to.out) + fragment, nil
	}
	if strings.HasPrefix(source, "docs/") && !strings.HasSuffix(source, ".md") {
		return relative(p.out, s.copied(source)), nil
	}
	if s.repository == "" {
		return "", nil
	}
	return s.repository + "/" + source + fragment, nil
}

// image is where an image of a page is in the site.
func (s *site) image(p *page, link string) ([]byte, error) {
	source := path.Join(path.Dir(p.source), link)
	if strings.Contains(link, "://") || !strings.HasPrefix(source, "docs/") {
		return nil, fmt.Errorf("the image %s is not in docs", link)
	}
	return []byte(relative(p.out, s.copied(source))), nil
}

// copied notes that a file goes along, and returns where it will be.
func (s *site) copied(source string) string {
	if !slices.Contains(s.files, source) {
		s.files = append(s.files, source)
	}
	return outName(source)
}

// relative is the way from one page of the site to another file of it.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

// replaceByChildren leaves the words of a link, and takes the link away.
func replaceByChildren(link ast.Node) {
	parent := link.Parent()
	for n := link.FirstChild(); n != nil; n = link.FirstChild() {
		parent.InsertBefore(parent, link, n)
	}
	parent.RemoveChild(parent, link)
}

func linkToItself(h *ast.Heading) {
	id, _ := h.AttributeString("id")
	name, _ := id.([]byte)
	link := ast.NewLink()
	link.Destination = append([]byte("#"), name...)
	link.SetAttributeString("class", []byte("self"))
	link.AppendChild(link, ast.NewString([]byte("#")))
	h.AppendChild(h, link)
}

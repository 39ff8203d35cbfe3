package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// house is the measure of all packages.
type house struct {
	Packages []pkg `json:"packages"`
}

// pkg is that of one, without its tests.
type pkg struct {
	Path string `json:"path"`
	// Lines are those with code: neither empty nor a comment alone.
	Lines     int `json:"lines"`
	Files     int `json:"files"`
	Functions int `json:"functions"`
	// Types are those with methods or fields, by name.
	Types []kind `json:"types"`
	// Imports are the packages of this module that it imports.
	Imports []string `json:"imports"`

	lengths []int          // of functions, in lines
	files   map[string]int // the lines of each file, by its path
}

// kind is a type.
type kind struct {
	Name    string `json:"name"`
	Methods int    `json:"methods"`
	Fields  int    `json:"fields"`

	files []string // in which its methods are
}

// module is how the paths of our packages begin.
const module = "toban.dev/"

// measure measures the packages below some folders.
func measure(repository fs.FS, below []string) (h house, err error) {
	packages := map[string]*pkg{}
	for _, folder := range below {
		err := fs.WalkDir(repository, folder, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			at := path.Dir(name)
			if packages[at] == nil {
				packages[at] = &pkg{Path: at, files: map[string]int{}}
			}
			return packages[at].add(repository, name)
		})
		if err != nil {
			return house{}, err
		}
	}
	for _, p := range packages {
		slices.Sort(p.Imports)
		slices.SortFunc(p.Types, func(a, b kind) int { return strings.Compare(a.Name, b.Name) })
		h.Packages = append(h.Packages, *p)
	}
	slices.SortFunc(h.Packages, func(a, b pkg) int { return cmp.Compare(a.Path, b.Path) })
	return h, nil
}

// add measures a file.
func (p *pkg) add(repository fs.FS, name string) error {
	text, err := fs.ReadFile(repository, name)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	p.Files++
	p.Lines += linesOfCode(text)
	p.files[name] = linesOfCode(text)
	for _, i := range file.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return err
		}
		if ours, is := strings.CutPrefix(imported, module); is && !slices.Contains(p.Imports, ours) {
			p.Imports = append(p.Imports, ours)
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			p.Functions++
			p.lengths = append(p.lengths, files.Position(d.End()).Line-files.Position(d.Pos()).Line+1)
			if d.Recv != nil {
				p.kind(receiver(d.Recv.List[0].Type)).addMethod(path.Base(name))
			}
		case *ast.GenDecl:
			p.structs(d)
		}
	}
	return nil
}

// structs counts the fields of the structs that are declared.
func (p *pkg) structs(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		t, is := spec.(*ast.TypeSpec)
		if !is {
			continue
		}
		if s, is := t.Type.(*ast.StructType); is {
			for _, f := range s.Fields.List {
				p.kind(t.Name.Name).Fields += max(1, len(f.Names))
			}
		}
	}
}

// kind is the type of a name, which is added where it is not there yet.
func (p *pkg) kind(name string) *kind {
	i := slices.IndexFunc(p.Types, func(k kind) bool { return k.Name == name })
	if i < 0 {
		p.Types = append(p.Types, kind{Name: name})
		i = len(p.Types) - 1
	}
	return &p.Types[i]
}

func (k *kind) addMethod(file string) {
	k.Methods++
	if !slices.Contains(k.files, file) {
		k.files = append(k.files, file)
	}
}

// receiver is the name of the type that has a method.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// linesOfCode counts the lines on which a token begins or goes on that is no comment.
func linesOfCode(text []byte) (lines int) {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0) // comments are left out
	last := 0
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(pos)
		end := first + strings.Count(literal, "\n")
		if end > last {
			lines += end - max(first-1, last)
			last = end
		}
	}
}

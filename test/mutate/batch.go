package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Compiling and linking costs more than the tests of most mutations. A batch is
// a test binary with all mutations of functions with the same tests. The environment
// variable Chosen names the mutation of a run:
//
//	func Fits(have, want int) bool {
//		if mutationChosen == 17 {
//			return func() bool { return have > want }()
//		}
//		return have >= want
//	}
//
// A failure in a batch counts. Mutations outside functions, and the survivors of a
// batch, are compiled singly, with the command of go test.
type batch struct {
	binary string
	dir    string // of the package, where its tests run
	skip   string // tests that fail in this binary without a mutation
	holds  map[int]bool
}

// Chosen is the environment variable with the number of the mutation.
const Chosen = "MUSTER_MUTATION"

// worthwhile is the number of mutations from which a batch costs less than
// compiling each.
const worthwhile = 3

// newBatch compiles mutations with the same package of tests. Their numbers are the
// keys of all. The batch is empty where too few can be compiled together.
func newBatch(ctx context.Context, root, tests, tmp string, all map[int]mutation) (batch, error) {
	b := batch{dir: filepath.Join(root, filepath.FromSlash(tests)), holds: map[int]bool{}}
	bodies := map[int]body{}
	for i, m := range all {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
		if err != nil {
			return batch{}, err
		}
		found, err := m.body(string(text))
		if err != nil {
			return batch{}, err
		}
		if found.text != "" {
			bodies[i] = found
		}
	}
	// Each round leaves out the mutations with errors of the compiler.
	for len(bodies) >= worthwhile {
		overlay, err := writeOverlay(root, tmp, all, bodies)
		if err != nil {
			return batch{}, err
		}
		binary := filepath.Join(tmp, "batch.test")
		out, err := goCommand(ctx, root, "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, tests)
		if err == nil {
			b.binary = binary
			break
		}
		refused := refused.FindAllSubmatch(out, -1)
		if len(refused) == 0 || ctx.Err() != nil {
			return batch{}, nil
		}
		for _, match := range refused {
			number, _ := strconv.Atoi(string(match[1]))
			delete(bodies, number)
		}
	}
	if b.binary == "" {
		return batch{}, nil
	}
	// Some tests count allocations, or read the source, and may fail in this binary.
	out, err := b.test(ctx, -1, "")
	if err != nil {
		var names []string
		for _, match := range failed.FindAllSubmatch(out, -1) {
			names = append(names, string(match[1]))
		}
		b.skip = "^(" + strings.Join(names, "|") + ")$"
		if _, err := b.test(ctx, -1, ""); err != nil || len(names) == 0 {
			return batch{}, nil
		}
	}
	for i := range bodies {
		b.holds[i] = true
	}
	return b, nil
}

var (
	refused = regexp.MustCompile(`mutation(\d+)\.go:\d+`)
	failed  = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
)

// test runs the binary with a mutation, or without mutation for -1.
func (b batch) test(ctx context.Context, number int, run string) ([]byte, error) {
	args := []string{"-test.paniconexit0"}
	if deadline, ok := ctx.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(deadline).String())
	}
	if number >= 0 {
		args = append(args, "-test.failfast")
	}
	if run != "" {
		args = append(args, "-test.run="+run)
	}
	if b.skip != "" {
		args = append(args, "-test.skip="+b.skip)
	}
	cmd := exec.CommandContext(ctx, b.binary, args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), Chosen+"="+strconv.Itoa(number))
	cmd.WaitDelay = 5 * time.Second
	return cmd.CombinedOutput()
}

// plant runs the tests of a mutation in the batch, and returns false where the
// mutation has to be compiled singly.
func (b batch) plant(number int, m mutation, limit time.Duration) (planted, bool) {
	if !b.holds[number] {
		return planted{}, false
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, err := b.test(ctx, number, m.run)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return planted{}, false
	}
	return planted{outcome: failure(ctx, out), took: time.Since(began)}, true
}

// body is a function with a mutation.
type body struct {
	pkg     string // the name of its package
	at      int    // the offset of the original behind its opening brace
	line    int    // of the opening brace
	results string // the source of the results, or ""
	text    string // the mutated statements; "" where the mutation is not within a function's statements
}

// body finds the function with other statements in the mutated text.
func (m mutation) body(text string) (body, error) {
	mutated, err := m.apply(text)
	if err != nil {
		return body{}, err
	}
	files := token.NewFileSet()
	before, err := parser.ParseFile(files, "before.go", text, parser.SkipObjectResolution)
	if err != nil {
		return body{}, err
	}
	after, err := parser.ParseFile(files, "after.go", mutated, parser.SkipObjectResolution)
	if err != nil || len(after.Decls) != len(before.Decls) {
		return body{}, nil
	}
	source := func(text string, from, to token.Pos) string {
		return text[files.Position(from).Offset:files.Position(to).Offset]
	}
	var found body
	for i, old := range before.Decls {
		changed := after.Decls[i]
		if source(text, old.Pos(), old.End()) == source(mutated, changed.Pos(), changed.End()) {
			continue
		}
		f, ok := old.(*ast.FuncDecl)
		g, same := changed.(*ast.FuncDecl)
		if found.text != "" || !ok || !same || f.Body == nil || g.Body == nil || recovers(g.Body) ||
			source(text, f.Pos(), f.Body.Lbrace) != source(mutated, g.Pos(), g.Body.Lbrace) {
			return body{}, nil
		}
		brace := files.Position(f.Body.Lbrace)
		found = body{pkg: before.Name.Name, at: brace.Offset + 1, line: brace.Line, text: source(mutated, g.Body.Lbrace+1, g.Body.Rbrace) + "\n"}
		if f.Type.Results != nil {
			found.results = source(text, f.Type.Results.Pos(), f.Type.Results.End())
		}
	}
	return found, nil
}

// recovers reports a call of recover, which has no effect in a function within the
// deferred function.
func recovers(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok && name.Name == "recover" {
			found = true
		}
		return !found
	})
	return found
}

// branch is the text behind the opening brace. Its line directives name the mutation
// in the compiler's errors, and keep the line numbers of the file.
func (b body) branch(number int, file string) string {
	call := fmt.Sprintf("func() { %s}(); return", b.text)
	if b.results != "" {
		call = fmt.Sprintf("return func() %s { %s}()", b.results, b.text)
	}
	return fmt.Sprintf("\n//line mutation%d.go:1\nif mutationChosen == %d { %s }\n//line %s:%d\n", number, number, call, filepath.Base(file), b.line)
}

// writeOverlay writes the files with their mutations, a file for each package with
// the number of the chosen mutation, and the list for -overlay.
func writeOverlay(root, tmp string, all map[int]mutation, bodies map[int]body) (string, error) {
	type edit struct {
		at   int
		text string
	}
	edits, packages := map[string][]edit{}, map[string]string{}
	for i, b := range bodies {
		file := all[i].file
		edits[file] = append(edits[file], edit{b.at, b.branch(i, file)})
		packages[filepath.Dir(filepath.FromSlash(file))] = b.pkg
	}
	replace := map[string]string{}
	write := func(file, text string) error {
		path, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		replace[path] = filepath.Join(tmp, strconv.Itoa(len(replace))+".go")
		return os.WriteFile(replace[path], []byte(text), 0o600)
	}
	for file, list := range edits {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return "", err
		}
		slices.SortStableFunc(list, func(a, b edit) int { return b.at - a.at })
		changed := string(text)
		for _, e := range list {
			changed = changed[:e.at] + e.text + changed[e.at:]
		}
		if err := write(file, changed); err != nil {
			return "", err
		}
	}
	for dir, name := range packages {
		text := fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar mutationChosen, _ = strconv.Atoi(os.Getenv(%q))\n", name, Chosen)
		if err := write(filepath.Join(dir, "mutation_chosen.go"), text); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(tmp, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

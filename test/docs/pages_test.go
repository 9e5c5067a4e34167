package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func readFile(name string) (string, error) {
	text, err := os.ReadFile(name)
	return string(text), err
}

var (
	flagRow   = regexp.MustCompile("(?m)^\\| (`-[^|]+) \\|")
	firstCell = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
)

// addPages adds the names of the generated pages of docs/reference: commands with their
// flags, keys of configurations, series. Tests of their own hold these pages to the code.
func (x *nameIndex) addPages() error {
	reference := filepath.Join(root, "docs", "reference")
	for _, program := range []string{"muster", "muster-agent", "muster-coordinator"} {
		text, err := readFile(filepath.Join(reference, program+".md"))
		if err != nil {
			return err
		}
		for _, section := range strings.Split(text, "\n## ")[1:] {
			command, _, _ := strings.Cut(section, "\n")
			flags := []string{"-h", "--help"}
			for _, row := range flagRow.FindAllStringSubmatch(section, -1) {
				for _, m := range codeFont.FindAllStringSubmatch(row[1], -1) {
					flags = append(flags, m[1])
					x.flags[m[1]] = true
				}
			}
			x.commands[command] = flags
			words := strings.Fields(command)
			for i := 1; i < len(words); i++ {
				x.groups[strings.Join(words[:i], " ")] = true
			}
			if len(words) == 2 && words[0] == "muster" {
				x.verbs[words[1]] = true
			}
		}
	}
	for command := range x.commands {
		x.programs[strings.Fields(command)[0]] = true
	}
	if len(x.verbs) < 30 || len(x.flags) < 60 {
		return fmt.Errorf("docs/reference has %d verbs of muster and %d flags, want 30 and 60 and more: the pages have another form, change addPages", len(x.verbs), len(x.flags))
	}
	mains, err := filepath.Glob(filepath.Join(root, "cmd", "muster*", "main.go"))
	if err != nil {
		return err
	}
	for _, main := range mains {
		x.programs[filepath.Base(filepath.Dir(main))] = true
	}
	for page, into := range map[string]map[string]bool{"muster-agent.yaml.md": x.keys, "muster-coordinator.yaml.md": x.keys, "metrics.md": x.series} {
		text, err := readFile(filepath.Join(reference, page))
		if err != nil {
			return err
		}
		rows := firstCell.FindAllStringSubmatch(text, -1)
		if len(rows) < 20 {
			return fmt.Errorf("docs/reference/%s has %d rows, want 20 and more: the page has another form, change addPages", page, len(rows))
		}
		for _, m := range rows {
			into[m[1]] = true
		}
	}
	if x.makefile, err = readFile(filepath.Join(root, "Makefile")); err != nil {
		return err
	}
	if err := x.addStoreKeys(); err != nil {
		return err
	}
	text, err := readFile(filepath.Join("testdata", "foreign.txt"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		word, meaning, ok := strings.Cut(line, "\t")
		if meaning = strings.TrimSpace(meaning); !ok || meaning == "" {
			return fmt.Errorf("test/docs/testdata/foreign.txt: %q: want a word, a tab and its meaning", line)
		}
		x.foreign[word] = meaning
	}
	return nil
}

// isPath reports whether a file or a folder of the tree is meant: from the module's
// folder, from the document's, or by the end of its path.
func (x *nameIndex) isPath(document, text string) bool {
	path := strings.TrimPrefix(strings.TrimSuffix(text, "/"), "./")
	path, _, _ = strings.Cut(path, " ")
	return x.paths[path] || x.paths[filepath.Join(filepath.Dir(document), path)] || x.paths["profiles/"+path+".json"]
}

var placeholder = regexp.MustCompile(`<[^>]+>|\{[^}]+\}|UUID`)

// isForm reports whether text is a name with places for others, such as <cluster>/serf,
// of which each fixed part is a text in the code.
func (x *nameIndex) isForm(text string) bool {
	parts := placeholder.Split(text, -1)
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part string) bool {
		return part != "" && !x.literals[part] && !x.literals[strings.Trim(part, "/")]
	})
}

// isStoreKey reports whether text is a key of the store, or the beginning of keys, as
// the headings of docs/store.md have the form of each: a text ends with / or … where
// more follows.
func (x *nameIndex) isStoreKey(text string) bool {
	path, whole := strings.CutPrefix(text, "/registry/")
	if whole && path == "" {
		return true
	}
	if before, after, many := strings.Cut(path, "|"); many { // spec|status|lease
		folder, _ := filepath.Split(before)
		return x.isStoreKey(before) && x.isStoreKey(folder+after)
	}
	pattern := regexp.QuoteMeta(placeholder.ReplaceAllString(path, "X"))
	pattern = strings.ReplaceAll(pattern, "…", ".*")
	if strings.HasSuffix(pattern, "/") {
		pattern += ".*"
	}
	re, err := regexp.Compile("^" + pattern + "$")
	return err == nil && slices.ContainsFunc(x.storeKeys, func(form string) bool {
		open := strings.TrimSuffix(form, "…")
		return re.MatchString(form) || open != form && strings.HasPrefix(path, open)
	})
}

// addStoreKeys reads the headings of docs/store.md.
func (x *nameIndex) addStoreKeys() error {
	text, err := readFile(filepath.Join(root, "docs", "store.md"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "## `") {
			for _, m := range codeFont.FindAllStringSubmatch(line, -1) {
				x.storeKeys = append(x.storeKeys, placeholder.ReplaceAllString(m[1], "X"))
			}
		}
	}
	if len(x.storeKeys) < 20 {
		return fmt.Errorf("the headings of docs/store.md have %d keys, want 20 and more", len(x.storeKeys))
	}
	return nil
}

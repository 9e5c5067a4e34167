package docs_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// named are the documents of which each name in code font has to exist.
var named = []string{"README.md", "SECURITY.md", "docs/DESIGN.md", "docs/PROTOCOL.md", "docs/walk.md", "docs/benchmarks.md"}

// span is a name in code font.
type span struct {
	line int
	text string
}

var codeFont = regexp.MustCompile("`([^`\n]+)`")

// spans returns the names in code font outside fenced blocks and comments.
func spans(text string) (all []span) {
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if fenced || strings.HasPrefix(line, "<!--") {
			continue
		}
		for _, m := range codeFont.FindAllStringSubmatch(line, -1) {
			all = append(all, span{i + 1, strings.ReplaceAll(m[1], `\|`, "|")})
		}
	}
	return all
}

// TestNamesInCodeFontExist: each name in code font is a part of the tree, a name of the
// code, a command, a key, a field, a state, a series, or a word of foreign.txt.
func TestNamesInCodeFontExist(t *testing.T) {
	x := names(t)
	used := map[string]bool{}
	for _, document := range named {
		for _, s := range spans(read(t, filepath.Join(root, document))) {
			if x.foreign[s.text] != "" {
				used[s.text] = true
			} else if why := x.unknown(document, s.text); why != "" {
				t.Errorf("%s:%d: `%s` %s.\nName a thing that exists; if the word belongs to Linux or another program, add it with its meaning to test/docs/testdata/foreign.txt", document, s.line, s.text, why)
			}
		}
	}
	for word := range x.foreign {
		if !used[word] {
			t.Errorf("test/docs/testdata/foreign.txt explains %q, which no document has in code font: take the line out", word)
		} else if why := x.unknown("", word); why == "" {
			t.Errorf("test/docs/testdata/foreign.txt explains %q, which is a name of this tree: take the line out", word)
		}
	}
}

// TestNamesThatDoNotExistAreFound: the check refuses names that nothing has.
func TestNamesThatDoNotExistAreFound(t *testing.T) {
	x := names(t)
	for name, known := range map[string]bool{
		"placeUnit": false, "Leader.placeUnit": false, "Leader.Apply": true, "lead.Leader": true, "lead.Nothing": false, "sched.World.Decide": true,
		"coordinator/web/": false, "coordinator/lead/": true, "lead/batch": true, "coordinator/lead/nothing.go": false,
		"make test": true, "make nothing": false, "BENCHTIME=5s make bench": true, "NOTHING=5s make bench": false,
		"muster why NAME": true, "muster fairshare": false, "muster fence NODE --confirm-dead": true, "muster fence NODE --sure": false, "quota apply|get|replay": true, "muster quota nothing": false,
		"go test -run '^$' -bench VoteAndCommit ./coordinator/lead": true, "go test -run '^$' -bench NothingAtAll ./coordinator/lead": false, "go test ./coordinator/nothing": false,
		"COMMITTED → EVICTING": true, "COMMITTED → GONE": false, "nodes/<id>/spec": true, "nodes/<id>/tx/": true, "nodes/<id>/shelf": false, "shelves/<id>": false, "/registry/nodes/{id}/spec|status": true, "/registry/nodes/{id}/spec|shelf": false, "<cluster>/serf": true, "<cluster>/somewhere": false,
		"tls.enabled": true, "tls.sometimes": false, "muster_commit_seconds": true, "muster_nothing_seconds": false, "MUSTER_ADDR": true, "MUSTER_NOTHING": false,
		"nvidia.com/mig-1g.10gb": true, "amd.com/gpu": false, "1500m": true, "onMemberLost: Replace": true, "muster.v1.Agent/Session": true, "muster.v1.Agent/Nothing": false,
	} {
		if why := x.unknown("README.md", name); (why == "") != known {
			t.Errorf("%q: known %t, want %t (%s)", name, why == "", known, why)
		}
	}
}

var (
	stateName = regexp.MustCompile(`^[A-Za-z]+$`)
	dotted    = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$`)
	called    = regexp.MustCompile(`^(?:[\w.]+/)?\w+(\.\w+)*/\w+$`) // muster.v1.Agent/Session
	keyValue  = regexp.MustCompile(`^([a-zA-Z.]+)(?:: |=)\S+$`)
	program   = regexp.MustCompile(`^(?:bin/)?(muster(?:-[a-z]+)?)( |$)`)
	variables = regexp.MustCompile(`^((?:[A-Z]+=\S+ )+)(make .*)$`)
)

// unknown says why a name is not known, "" where it is.
func (x *nameIndex) unknown(document, text string) string {
	switch {
	case strings.Contains(text, " → "):
		return x.unknownStates(text)
	case variables.MatchString(text):
		m := variables.FindStringSubmatch(text)
		for _, v := range strings.Fields(m[1]) {
			if name, _, _ := strings.Cut(v, "="); !strings.Contains(x.makefile, "$("+name+")") {
				return "sets " + name + ", which the Makefile does not read"
			}
		}
		return x.unknown(document, m[2])
	case strings.HasPrefix(text, "make "):
		for _, target := range strings.Fields(text)[1:] {
			if !strings.Contains(target, "=") && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(target)+`:`).MatchString(x.makefile) {
				return "names the target " + target + ", which the Makefile does not have"
			}
		}
		return ""
	case strings.HasPrefix(text, "go test ") || strings.HasPrefix(text, "(cd "):
		return x.unknownTests(text)
	case strings.HasPrefix(text, "-bench "):
		return x.unknownTests("go test " + text)
	case program.MatchString(text):
		return x.unknownCommand(strings.TrimPrefix(text, "bin/"))
	case strings.HasPrefix(text, "-"):
		flag, _, _ := strings.Cut(text, " ")
		if !x.flags[flag] {
			return "is no flag of a program"
		}
		return ""
	case keyValue.MatchString(text):
		if key := keyValue.FindStringSubmatch(text)[1]; !x.fields[key] && !x.keys[key] {
			return "gives a value to " + key + ", which is no field and no key of a configuration"
		}
		return ""
	case x.verbs[strings.Fields(text)[0]] && strings.Contains(text, " ") || x.verbs[text]:
		return x.unknownCommand("muster " + text)
	}
	return x.unknownName(document, text)
}

// unknownName judges a name that is no command.
func (x *nameIndex) unknownName(document, text string) string {
	benchmark, _, _ := strings.Cut(text, "/") // Year/SQLite
	_, amount := resource.ParseAmount(resource.Memory, strings.Trim(text, `"`))
	_, part := resource.ParseAmount(resource.CPU, strings.Trim(text, `"`))
	switch {
	case x.declared[text], x.declared["Benchmark"+benchmark] && document == "docs/benchmarks.md", x.literals[text], x.fields[text], x.keys[text], x.series[text]:
		return ""
	case amount == nil, part == nil, api.CheckResource(resource.Name(text)) == nil:
		return ""
	case x.isPath(document, text), x.isStoreKey(text), x.isForm(text), x.literals[strings.TrimSuffix(text, "/")], x.literals["GET "+text]:
		return ""
	case called.MatchString(text) && x.rpcs[text]:
		return ""
	case dotted.MatchString(text):
		return "is no name of the code and no key of a configuration"
	}
	return "is neither a file, a name of the code, a command, a field, a key, a state nor a series"
}

// unknownStates judges steps such as `HELD → EVICTING, NONE`.
func (x *nameIndex) unknownStates(text string) string {
	for _, state := range regexp.MustCompile(` → |, | |[()]`).Split(text, -1) {
		if state != "" && state != "→" && state != "absent" && !(stateName.MatchString(state) && x.literals[state]) {
			return "has the state " + state + ", which is in no code"
		}
	}
	return ""
}

// unknownCommand judges a command line by docs/reference: its verbs and its flags.
func (x *nameIndex) unknownCommand(text string) string {
	words := strings.Fields(strings.NewReplacer("[", "", "]", "", "...", "").Replace(text))
	command := words[0]
	if !x.programs[command] {
		return "names the program " + command + ", which there is not"
	}
	rest := words[1:]
	for len(rest) > 0 && x.commands[command+" "+rest[0]] != nil {
		command, rest = command+" "+rest[0], rest[1:]
	}
	if len(rest) > 0 && regexp.MustCompile(`^[a-z|-]+$`).MatchString(rest[0]) && !strings.HasPrefix(rest[0], "-") && x.groups[command] {
		for verb := range strings.SplitSeq(rest[0], "|") {
			if x.commands[command+" "+verb] == nil {
				return "has the verb " + verb + ", which " + command + " does not have"
			}
		}
	}
	for _, w := range rest {
		flag, _, _ := strings.Cut(w, "=")
		if strings.HasPrefix(w, "-") && flag != "-" && !slices.Contains(x.commands[command], flag) && !slices.Contains(x.commands[strings.Fields(command)[0]], flag) {
			return "has the flag " + flag + ", which " + command + " does not have"
		}
	}
	return ""
}

// unknownTests judges a line of go test: its packages, and that a pattern of -run or
// -bench finds something there.
func (x *nameIndex) unknownTests(text string) string {
	folder, words := "", strings.Fields(strings.Trim(text, "()"))
	if words[0] == "cd" {
		folder, words = words[1], words[3:]
	}
	var packages []string
	patterns := map[string]string{}
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "./"):
			at := filepath.Join(folder, w)
			if !x.folders[at] {
				return "names the package " + w + ", which there is not"
			}
			packages = append(packages, at)
		case (w == "-run" || w == "-bench") && i+1 < len(words):
			patterns[map[string]string{"-run": "Test", "-bench": "Benchmark"}[w]] = strings.Trim(words[i+1], "'")
		}
	}
	for kind, pattern := range patterns {
		first, _, _ := strings.Cut(pattern, "/")
		if first == "^$" {
			continue
		}
		re, err := regexp.Compile(first)
		if err != nil {
			return "has the pattern " + pattern + ": " + err.Error()
		}
		if !slices.ContainsFunc(x.tests, func(f testFunction) bool {
			return strings.HasPrefix(f.name, kind) && re.MatchString(f.name) && (len(packages) == 0 || slices.Contains(packages, f.folder))
		}) {
			return "has the pattern " + pattern + ", which finds nothing there"
		}
	}
	return ""
}

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota/quotajson"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/yamldoc"
)

// maxFile bounds the content of one -f, in bytes.
const maxFile = 16 << 20

// read returns the objects of all files in order, each validated and given its
// namespace. Nothing is sent anywhere: a mistake in the last document keeps
// the first from being submitted.
func (a *app) read(files []string) ([]object, error) {
	var objects []object
	files, err := expand(files, a.recursive)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		name, raw, err := a.contents(file)
		if err != nil {
			return nil, err
		}
		documents, err := split(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		documents = unlist(documents)
		for i, doc := range documents {
			o, err := a.decode(doc)
			if err != nil {
				where := name
				if len(documents) > 1 {
					where = fmt.Sprintf("%s: document %d", name, i+1)
				}
				return nil, fmt.Errorf("%s: %w", where, err)
			}
			objects = append(objects, o)
		}
		if len(documents) == 0 {
			return nil, fmt.Errorf("%s holds no document", name)
		}
	}
	return objects, nil
}

// expand replaces folders by the documents in them, in order of their names:
// the files whose names end in .yaml, .yml or .json, and with recursive those of
// the folders below as well. Standard input may be named once.
func expand(files []string, recursive bool) ([]string, error) {
	var all []string
	for _, file := range files {
		if file == "-" && slices.Contains(all, file) {
			return nil, usagef("-f - is given twice: standard input is read once")
		}
		info, err := os.Stat(file)
		if file == "-" || err != nil || !info.IsDir() {
			all = append(all, file) // a missing file is refused where it is read
			continue
		}
		found, err := documentsIn(file, recursive)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("folder %s has no file that ends in .yaml, .yml or .json", file)
		}
		all = append(all, found...)
	}
	return all, nil
}

func documentsIn(folder string, recursive bool) ([]string, error) {
	var found []string
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != folder && !recursive:
			return fs.SkipDir
		case e.IsDir():
		case slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

// contents reads a file, or standard input for "-".
func (a *app) contents(file string) (name string, raw []byte, err error) {
	source := a.Stdin
	if name = "standard input"; file != "-" {
		name = file
		f, err := os.Open(file)
		if err != nil {
			return name, nil, err
		}
		defer func() { _ = f.Close() }() // only read
		source = f
	}
	raw, err = io.ReadAll(io.LimitReader(source, maxFile+1))
	if err != nil {
		return name, nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(raw) > maxFile {
		return name, nil, fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return name, raw, nil
}

// split cuts a stream of JSON documents, or of YAML ones between "---" lines,
// and returns each as JSON. Empty YAML documents are skipped.
func split(raw []byte) ([][]byte, error) {
	if start := bytes.TrimSpace(raw); len(start) > 0 && start[0] == '{' && json.Valid(firstValue(start)) {
		return splitJSON(start), nil
	}
	var documents [][]byte
	var one strings.Builder
	flush := func() error {
		text := one.String()
		one.Reset()
		doc, err := yamldoc.ToJSON([]byte(text))
		var ambiguous *yamldoc.AmbiguousError
		switch {
		case errors.As(err, &ambiguous):
			return fmt.Errorf("document %d: %w", len(documents)+1, err)
		case err != nil:
			return fmt.Errorf("document %d is not YAML: %w", len(documents)+1, err)
		}
		if string(doc) != "null" {
			documents = append(documents, doc)
		}
		return nil
	}
	for line := range strings.Lines(string(raw)) {
		if text := strings.TrimRight(line, " \t\r\n"); text == "---" || strings.HasPrefix(text, "--- #") {
			if err := flush(); err != nil {
				return nil, err
			}
			continue
		}
		one.WriteString(line)
	}
	return documents, flush()
}

// unlist replaces lists, as get prints them, by their items.
func unlist(documents [][]byte) [][]byte {
	var all [][]byte
	for _, doc := range documents {
		var list struct {
			Kind  string            `json:"kind"`
			Items []json.RawMessage `json:"items"`
		}
		if json.Unmarshal(doc, &list) != nil || !strings.HasSuffix(list.Kind, "List") || list.Items == nil {
			all = append(all, doc)
			continue
		}
		for _, item := range list.Items {
			all = append(all, item)
		}
	}
	return all
}

// firstValue is the first JSON value of a stream, or nothing if it is broken.
func firstValue(raw []byte) []byte {
	var value json.RawMessage
	if json.NewDecoder(bytes.NewReader(raw)).Decode(&value) != nil {
		return nil
	}
	return value
}

// splitJSON returns the values of a stream; from the first broken one on, the
// rest is one document, which its decoder then refuses with the place.
func splitJSON(raw []byte) [][]byte {
	var documents [][]byte
	for len(raw) > 0 {
		var value json.RawMessage
		decoder := json.NewDecoder(bytes.NewReader(raw))
		if err := decoder.Decode(&value); err != nil {
			return append(documents, raw)
		}
		documents = append(documents, value)
		raw = bytes.TrimSpace(raw[decoder.InputOffset():])
	}
	return documents
}

// decode reads one document of any kind.
func (a *app) decode(doc []byte) (object, error) {
	named, status := api.PeekKind(doc)
	if status != nil {
		return object{}, status
	}
	k, known := sdk.KindOfDocument(named)
	if !known {
		return object{}, fmt.Errorf("kind: %q is not one of %s", named, strings.Join(documentKinds(), ", "))
	}
	decoded, status := k.Decode(doc)
	if status != nil {
		return object{}, status
	}
	o := object{Object: decoded, raw: doc}
	if tree := as[api.QuotaTree](o); tree != nil {
		written, err := json.Marshal(tree) // without the status
		if err != nil {
			return object{}, err
		}
		if _, err := quotajson.Tree(written, quotajson.Natural); err != nil {
			return object{}, err
		}
	}
	o.meta().ResourceVersion = versionIn(doc)
	if !k.Namespaced {
		return o, nil
	}
	return o, a.assignNamespace(o.meta())
}

// documentKinds are the kinds that files may hold.
func documentKinds() []string {
	var names []string
	for _, k := range sdk.Kinds {
		if !k.Derived {
			names = append(names, k.Document)
		}
	}
	return names
}

// versionIn returns the resourceVersion of a document that was decoded.
func versionIn(doc []byte) string {
	var d struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(doc, &d) // it was decoded already
	return d.Metadata.ResourceVersion
}

// assignNamespace gives a document the namespace of the command, unless it has
// its own; two that differ are a mistake.
func (a *app) assignNamespace(m *api.ObjectMeta) error {
	switch {
	case m.Namespace == "":
		m.Namespace = a.namespace
	case a.namespaceGiven && m.Namespace != a.namespace:
		return fmt.Errorf("metadata.namespace: %q differs from %q of -n", m.Namespace, a.namespace)
	}
	return nil
}

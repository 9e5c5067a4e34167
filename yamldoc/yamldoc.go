// Package yamldoc reads YAML that people write, as JSON. It refuses scalars that
// parsers of YAML understand differently: a document must mean to Muster the same
// as to its reader. It decides nothing about fields.
//
// A quoted scalar and a scalar with a tag have one meaning and pass.
package yamldoc

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// AmbiguousError is the refusal of a scalar that has several meanings.
type AmbiguousError struct {
	Field string // by its path; "the document" for a document that is a scalar
	Line  int    // of the text that was read, from 1
	Value string
	// Key: the value is a key of Field's last part.
	Key bool
}

func (e *AmbiguousError) Error() string {
	what := "the value"
	if e.Key {
		what = "the key"
	}
	return fmt.Sprintf("%s (line %d): %s %s is %s", e.Field, e.Line, what, e.Value, Ambiguity(e.Value))
}

// Bounds of a document. Servers keep to MaxBytes, since the time of a conversion grows with
// the bytes; clients convert files of any length.
const (
	MaxBytes = 256 << 10
	// MaxValues bounds the values of a document with aliases written out, and MaxText the
	// bytes of their text: a few lines of aliases stand for millions of values.
	MaxValues = 1 << 16
	MaxText   = 1 << 20
	// MaxDepth bounds how deep values are nested.
	MaxDepth = 64
)

// ErrTooLarge is the refusal of a document beyond MaxValues, MaxText or MaxDepth.
var ErrTooLarge = errors.New("the document is too large")

// ToJSON converts one YAML document into JSON. A scalar that is ambiguous is an
// *AmbiguousError, and a document beyond the bounds an ErrTooLarge; every other error means:
// the text is no YAML, or has a key twice.
func ToJSON(data []byte) ([]byte, error) {
	if err := Check(data); err != nil {
		return nil, err
	}
	doc, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, plain(err)
	}
	return doc, nil
}

// Check refuses documents with an ambiguous scalar by an *AmbiguousError, and documents
// beyond the bounds by an ErrTooLarge. A document that cannot be
// parsed passes: its decoder refuses it.
func Check(data []byte) error {
	for decoder := yamlv3.NewDecoder(strings.NewReader(string(data))); ; {
		var root yamlv3.Node
		switch err := decoder.Decode(&root); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return nil //nolint:nilerr // the decoder of the document refuses it, in its words
		}
		if _, err := sizeOf(&root, map[*yamlv3.Node]size{}, 0); err != nil {
			return err
		}
		if err := check(&root, ""); err != nil {
			return err
		}
	}
}

// size is the size of a node with all below, aliases written out.
type size struct{ values, text, depth int }

// sizeOf measures a node at a depth; known are the measured nodes.
func sizeOf(n *yamlv3.Node, known map[*yamlv3.Node]size, depth int) (size, error) {
	if s, found := known[n]; found && depth+s.depth <= MaxDepth {
		return s, nil
	}
	if depth > MaxDepth {
		return size{}, fmt.Errorf("%w: values are nested deeper than %d", ErrTooLarge, MaxDepth)
	}
	s := size{values: 1, text: len(n.Value)}
	below := n.Content
	if n.Kind == yamlv3.AliasNode {
		s, below = size{}, []*yamlv3.Node{n.Alias}
	}
	for _, child := range below {
		c, err := sizeOf(child, known, depth+1)
		if err != nil {
			return s, err
		}
		s.values, s.text, s.depth = s.values+c.values, s.text+c.text, max(s.depth, c.depth+1)
		if s.values > MaxValues || s.text > MaxText {
			return s, fmt.Errorf("%w: with its aliases written out it has more than %d values or %d bytes of text", ErrTooLarge, MaxValues, MaxText)
		}
	}
	known[n] = s
	return s, nil
}

// check looks at a node and all below it. An alias stands for a node that is looked
// at in its own place.
func check(n *yamlv3.Node, path string) error {
	switch n.Kind {
	case yamlv3.DocumentNode:
		for _, child := range n.Content {
			if err := check(child, path); err != nil {
				return err
			}
		}
	case yamlv3.SequenceNode:
		for i, child := range n.Content {
			if err := check(child, path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if err := scalar(key, join(path, key.Value)); err != nil {
				err.Key = true
				return err
			}
			if err := check(n.Content[i+1], join(path, key.Value)); err != nil {
				return err
			}
		}
	case yamlv3.ScalarNode:
		if err := scalar(n, path); err != nil {
			return err
		}
	case yamlv3.AliasNode:
	}
	return nil
}

// longestPath bounds the field's name in a message, in bytes.
const longestPath = 200

func join(path, key string) string {
	if len(path)+len(key) > longestPath {
		return path
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// scalar refuses a plain scalar whose text is ambiguous.
func scalar(n *yamlv3.Node, path string) *AmbiguousError {
	const quoted = yamlv3.DoubleQuotedStyle | yamlv3.SingleQuotedStyle | yamlv3.LiteralStyle | yamlv3.FoldedStyle | yamlv3.TaggedStyle
	if n.Kind != yamlv3.ScalarNode || n.Style&quoted != 0 {
		return nil
	}
	if Ambiguity(n.Value) == "" {
		return nil
	}
	if path == "" {
		path = "the document"
	}
	return &AmbiguousError{Field: path, Line: n.Line, Value: n.Value}
}

// plain drops the library's prefixes and line breaks.
func plain(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return errors.New(text)
}

// Package pricefile reads price lists that operators write as YAML. It decides which
// texts are a price list; what a price means is coordinator/history/usage's.
//
//	currency: USD
//	prices:
//	  - {from: 2026-01-01, slot: cpu, hour: 0.04}
//	  - {from: 2026-01-01, slot: memory, per: 1Gi, hour: 0.005}
//	  - {from: 2026-01-01, slot: nvidia.com/gpu, hour: 2.50}
//	  - {from: 2026-07-01T06:00:00Z, slot: nvidia.com/gpu, model: NVIDIA H100 80GB HBM3, hour: 4.10}
//
// A price holds from its instant on until a later one of the same slot and model. `per`
// is the amount that costs so much an hour, 1 where it is not given.
package pricefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/yamldoc"
)

// Bounds of a file and its texts, in bytes.
const (
	MaxSize = 1 << 20
	maxText = 128
)

// currency is a code of ISO 4217 in its form.
var currency = regexp.MustCompile(`^[A-Z]{3}$`)

// Error is the refusal of a field.
type Error struct {
	Line   int    // from 1
	Field  string // "prices[2].hour"
	Reason string // with the value and what is wanted
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s: %s", e.Line, e.Field, e.Reason) }

// Read reads a price list's file. Each error names the file.
func Read(path string) (usage.Prices, error) {
	file, err := os.Open(path)
	if err != nil {
		return usage.Prices{}, fmt.Errorf("price list: %w", err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	if err != nil {
		return usage.Prices{}, fmt.Errorf("price list %s: %w", path, err)
	}
	prices, err := Decode(data)
	if err != nil {
		return usage.Prices{}, fmt.Errorf("price list %s: %w", path, err)
	}
	return prices, nil
}

// Decode reads a price list. A field that it does not know, a field given twice, a value
// out of its bounds and a second document are an *Error with the line and the field.
func Decode(data []byte) (usage.Prices, error) {
	if len(data) > MaxSize {
		return usage.Prices{}, fmt.Errorf("%d bytes, more than %d", len(data), MaxSize)
	}
	if err := yamldoc.Check(data); err != nil {
		return usage.Prices{}, err
	}
	root, err := document(data)
	if err != nil {
		return usage.Prices{}, err
	}
	fields, err := mapping(root, "the price list", "currency", "prices")
	if err != nil {
		return usage.Prices{}, err
	}
	code, err := text(fields, "currency", root)
	if err != nil {
		return usage.Prices{}, err
	}
	if !currency.MatchString(code) {
		return usage.Prices{}, &Error{fields["currency"].Line, "currency", fmt.Sprintf("%q: want three capital letters, such as USD", code)}
	}
	rows := fields["prices"]
	if rows == nil || rows.Kind != yamlv3.SequenceNode {
		return usage.Prices{}, &Error{lineOf(rows, root), "prices", "want a list of prices"}
	}
	if len(rows.Content) > usage.MaxPrices {
		return usage.Prices{}, &Error{rows.Line, "prices", fmt.Sprintf("%d prices, more than %d", len(rows.Content), usage.MaxPrices)}
	}
	return decodeRows(code, rows.Content)
}

// document is the value of the only document.
func document(data []byte) (*yamlv3.Node, error) {
	decoder := yamlv3.NewDecoder(strings.NewReader(string(data)))
	var root, second yamlv3.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, &Error{1, "the price list", "empty: want currency and prices"}
	case err != nil:
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &Error{max(1, second.Line), "the price list", "a second document: want one"}
	}
	return root.Content[0], nil
}

func decodeRows(code string, nodes []*yamlv3.Node) (usage.Prices, error) {
	type id struct {
		slot, model string
		from        time.Time
	}
	seen := map[id]int{}
	list := make([]usage.Price, 0, len(nodes))
	for i, node := range nodes {
		at := fmt.Sprintf("prices[%d]", i)
		p, err := decodePrice(node, at)
		if err != nil {
			return usage.Prices{}, err
		}
		key := id{string(p.Slot), p.Model, p.From}
		if line := seen[key]; line > 0 {
			return usage.Prices{}, &Error{node.Line, at, fmt.Sprintf("the price of %s from %s is given in line %d, too: keep one", p.Slot, p.From.Format(time.RFC3339), line)}
		}
		seen[key] = node.Line
		list = append(list, p)
	}
	return usage.NewPrices(code, list)
}

func decodePrice(node *yamlv3.Node, at string) (usage.Price, error) {
	fields, err := mapping(node, at, "from", "slot", "model", "per", "hour")
	if err != nil {
		return usage.Price{}, err
	}
	var p usage.Price
	for _, field := range []struct {
		name     string
		optional bool
		read     func(value string) error
	}{
		{"slot", false, func(v string) error { p.Slot = resource.Name(v); return nil }},
		{"from", false, func(v string) (err error) { p.From, err = instant(v); return err }},
		{"model", true, func(v string) error { p.Model = v; return nil }},
		{"per", true, func(v string) (err error) { p.Per, err = amount(p.Slot, v); return err }},
		{"hour", false, func(v string) (err error) { p.Hour, err = usage.ParseMoney(v); return err }},
	} {
		if fields[field.name] == nil && field.optional {
			continue
		}
		value, err := text(fields, field.name, node)
		if err == nil {
			err = field.read(value)
		}
		if refusal := new(Error); errors.As(err, &refusal) {
			return p, &Error{refusal.Line, at + "." + field.name, refusal.Reason}
		} else if err != nil {
			return p, &Error{fields[field.name].Line, at + "." + field.name, err.Error()}
		}
	}
	if p.Per == 0 {
		p.Per, err = amount(p.Slot, "1")
	}
	return p, err
}

// instant reads a day or an instant, which is a full hour.
func instant(value string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		at, err := time.Parse(layout, value)
		if err != nil {
			continue
		}
		if at = at.UTC(); !at.Equal(at.Truncate(time.Hour)) {
			return at, fmt.Errorf("%q: want a full hour (UTC)", value)
		}
		if at.Year() < 2000 || at.Year() > 2200 {
			return at, fmt.Errorf("%q: the year is outside 2000..2200", value)
		}
		return at, nil
	}
	return time.Time{}, fmt.Errorf("%q: want a day, such as 2026-01-31, or a full hour, such as 2026-01-31T06:00:00Z", value)
}

// amount reads a positive quantity of the slot.
func amount(slot resource.Name, value string) (int64, error) {
	per, err := resource.ParseAmount(slot, value)
	if err != nil {
		return 0, err
	}
	if per < 1 {
		return 0, fmt.Errorf("%q: want more than 0", value)
	}
	return per, nil
}

// mapping are the values of a mapping by their keys, each of which is one of the known.
func mapping(node *yamlv3.Node, at string, known ...string) (map[string]*yamlv3.Node, error) {
	if node.Kind != yamlv3.MappingNode {
		return nil, &Error{max(1, node.Line), at, "want fields: " + strings.Join(known, ", ")}
	}
	fields := map[string]*yamlv3.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := key.Value
		if key.Kind != yamlv3.ScalarNode || !slices.Contains(known, name) {
			return nil, &Error{key.Line, at, fmt.Sprintf("no field %q: want %s", clip(name), strings.Join(known, ", "))}
		}
		if fields[name] != nil {
			return nil, &Error{key.Line, at, fmt.Sprintf("the field %q is given twice, in line %d first", name, fields[name].Line)}
		}
		fields[name] = value
	}
	return fields, nil
}

// text is the scalar of a field as it was written: a decimal keeps its digits.
func text(fields map[string]*yamlv3.Node, name string, of *yamlv3.Node) (string, error) {
	node := fields[name]
	switch {
	case node == nil:
		return "", &Error{lineOf(nil, of), name, "lacking"}
	case node.Kind != yamlv3.ScalarNode:
		return "", &Error{node.Line, name, "want one value"}
	case node.Value == "" || len(node.Value) > maxText:
		return "", &Error{node.Line, name, fmt.Sprintf("%d bytes: want 1..%d", len(node.Value), maxText)}
	}
	return node.Value, nil
}

func lineOf(node, of *yamlv3.Node) int {
	if node != nil {
		return node.Line
	}
	return max(1, of.Line)
}

// clip shortens a text from outside for a message.
func clip(text string) string {
	if len(text) > 40 {
		return text[:40] + "…"
	}
	return text
}

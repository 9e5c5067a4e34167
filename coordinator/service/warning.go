package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// This file carries warnings from a Service to the answers of its APIs.

// Bounds of the warnings of one answer.
const (
	mostWarnings = 16
	longestText  = 512 // in bytes
)

type (
	warningsKey struct{}
	unknownKey  struct{}
)

// warnings are the texts of one request, each once, in the order in which they came.
type warnings struct {
	mu    sync.Mutex
	texts []string
	more  int
}

// WithWarnings returns a context that collects the texts of Warn. collected returns the
// texts so far.
func WithWarnings(ctx context.Context) (with context.Context, collected func() []string) {
	w := new(warnings)
	return context.WithValue(ctx, warningsKey{}, w), w.all
}

// Warn adds a warning to the answer of the request that ctx belongs to. A request
// that failed has its warnings too. Warn has no effect outside WithWarnings.
func Warn(ctx context.Context, text string) {
	if w, ok := ctx.Value(warningsKey{}).(*warnings); ok {
		w.add(text)
	}
}

func (w *warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text = printable(text)
	switch {
	case text == "" || slices.Contains(w.texts, text):
	case len(w.texts) == mostWarnings:
		w.more++
	default:
		w.texts = append(w.texts, text)
	}
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.texts)
	if w.more > 0 {
		all = append(all, fmt.Sprintf("and %d more warnings", w.more))
	}
	return all
}

// printable is a text of bounded length that a header may hold.
func printable(text string) string {
	if len(text) > longestText {
		text = strings.ToValidUTF8(text[:longestText], "") + "..."
	}
	text = strings.NewReplacer("…", "...", "≤", "<=", "≥", ">=").Replace(text)
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

// AllowUnknownResources returns a context in which documents of quota keep names of
// resources that are misspelt.
func AllowUnknownResources(ctx context.Context) context.Context {
	return context.WithValue(ctx, unknownKey{}, true)
}

// AllowsUnknownResources reports whether ctx comes from AllowUnknownResources.
func AllowsUnknownResources(ctx context.Context) bool { return ctx.Value(unknownKey{}) != nil }

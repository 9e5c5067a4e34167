package configfile

import (
	"errors"
	"fmt"
	"strings"
)

// misplaced is an error whose text names the place that the bad value comes from.
type misplaced struct {
	text string
	err  error
}

func (m misplaced) Error() string { return m.text }
func (m misplaced) Unwrap() error { return m.err }

// NameOrigin says where the bad values of a configuration come from: each error that
// begins with a key names the flag that was given for the key, where there is one,
// and else the file, where there is one. given has the flags by their keys.
func NameOrigin(err error, file string, given map[string]string) error {
	var fromFlags, fromFile []error
	for _, e := range flat(err) {
		if flag, rest, ok := flagOf(e.Error(), given); ok {
			fromFlags = append(fromFlags, misplaced{"--" + flag + rest, e})
		} else {
			fromFile = append(fromFile, e)
		}
	}
	if len(fromFile) > 0 && file != "" {
		fromFile = []error{fmt.Errorf("config %s: %w", file, errors.Join(fromFile...))}
	}
	return errors.Join(append(fromFlags, fromFile...)...)
}

// flat takes joined errors apart.
func flat(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // the outermost error alone may be a list
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flat(e)...)
	}
	return all
}

// flagOf finds the flag of the key that a refusal begins with, and returns the
// refusal behind the key.
func flagOf(text string, given map[string]string) (flag, rest string, ok bool) {
	end := strings.IndexAny(text, ":[ ,")
	if end < 0 {
		return "", "", false
	}
	flag, ok = given[text[:end]]
	return flag, text[end:], ok
}

package yamldoc

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// The forms of numbers on which YAML 1.1, YAML 1.2 and JSON disagree: yaml.org/type
// (int, float, bool) of 1.1, section 10.3 (core schema) of 1.2.
var (
	based       = regexp.MustCompile(`^[-+]?0(x[0-9a-fA-F_]+|X[0-9a-fA-F_]+|o[0-7_]+|O[0-7_]+|b[01_]+|B[01_]+)$`)
	leadingZero = regexp.MustCompile(`^[-+]?0[0-9_]+$`)
	underscored = regexp.MustCompile(`^[-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?$|^[-+]?[0-9]+\.[0-9_]*_[0-9_]*([eE][-+]?[0-9]+)?$`)
	exponential = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$`)
	sexagesimal = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)
)

// longest bounds the scalars that can be ambiguous, in bytes: a longer one is text,
// or a number that no field takes.
const longest = 64

// Ambiguity says what a plain scalar means to different parsers of YAML and what to
// write instead; "" where it has one meaning.
func Ambiguity(text string) string {
	if text == "" || len(text) > longest {
		return ""
	}
	switch strings.ToLower(text) {
	case "yes", "on", "y":
		return wordly(text, "true")
	case "no", "off", "n":
		return wordly(text, "false")
	case ".nan", ".inf", "+.inf", "-.inf":
		return fmt.Sprintf("no number that a field can have: write a number, or %q for the text", text)
	}
	switch {
	case based.MatchString(text):
		return numeric(text, 0)
	case leadingZero.MatchString(text):
		return numeric(text, 8)
	case underscored.MatchString(text):
		return numeric(text, 10)
	case exponential.MatchString(text):
		return fmt.Sprintf("a number to some parsers of YAML and text to others: write the number without an exponent, or %q for the text", text)
	case sexagesimal.MatchString(text):
		return fmt.Sprintf("a number of base 60 to some parsers of YAML and text to others: write %q for the text", text)
	}
	return ""
}

func wordly(text, means string) string {
	return fmt.Sprintf("%s to some parsers of YAML and text to others: write %s, or %q for the text", means, means, text)
}

// numeric words a number that some parsers read in a base; 0 is the base of its
// prefix.
func numeric(text string, base int) string {
	digits := strings.ReplaceAll(strings.TrimPrefix(text, "+"), "_", "")
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return fmt.Sprintf("a number to some parsers of YAML and text to others: write its digits alone, or %q for the text", text)
	}
	return fmt.Sprintf("the number %s to some parsers of YAML, and another number or text to others: write the number in decimal digits, or %q for the text", n, text)
}

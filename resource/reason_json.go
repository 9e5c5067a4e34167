package resource

import (
	"encoding/json"
	"fmt"
)

// writtenReason is a Reason as documents have it. Where the reason is about an
// amount, want, have and short are present, also at 0; else all three are
// absent.
type writtenReason struct {
	Code     string  `json:"code"`
	Resource Name    `json:"resource,omitempty"`
	Want     *string `json:"want,omitempty"`
	Have     *string `json:"have,omitempty"`
	Short    *string `json:"short,omitempty"`
	Detail   string  `json:"detail,omitempty"`
}

// MarshalJSON writes amounts as quantities with their units, e.g. "2", "512Mi"
// or "500m".
func (r Reason) MarshalJSON() ([]byte, error) {
	w := writtenReason{Code: r.Code, Resource: r.Resource, Detail: r.Detail}
	if r.Resource != "" {
		amount := func(v int64) *string {
			text := FormatAmount(r.Resource, v)
			return &text
		}
		w.Want, w.Have, w.Short = amount(r.Want), amount(r.Have), amount(r.Short())
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads a written reason. The field short follows from the others
// and is ignored.
func (r *Reason) UnmarshalJSON(doc []byte) error {
	var w writtenReason
	if err := json.Unmarshal(doc, &w); err != nil {
		return err
	}
	read := Reason{Code: w.Code, Resource: w.Resource, Detail: w.Detail}
	for _, f := range []struct {
		name string
		text *string
		to   *int64
	}{{"want", w.Want, &read.Want}, {"have", w.Have, &read.Have}} {
		if f.text == nil {
			continue
		}
		v, err := readAmount(w.Resource, *f.text)
		if err != nil {
			return fmt.Errorf("%s of reason %s: %w", f.name, w.Code, err)
		}
		*f.to = v
	}
	*r = read
	return nil
}

// readAmount is the inverse of FormatAmount. Unlike a quantity of a request, an
// amount of a reason may be negative: a group can have more charged than its
// limit.
func readAmount(name Name, text string) (int64, error) {
	if text == unlimitedText {
		return Unlimited, nil
	}
	if len(text) > 1 && text[0] == '-' {
		v, err := ParseAmount(name, text[1:])
		return -v, err
	}
	return ParseAmount(name, text)
}

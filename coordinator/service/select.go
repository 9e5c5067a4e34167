package service

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/musterd/muster/api"
)

// Bounds of one page of a list.
const (
	// MaxPage is the default and the greatest number of objects of a page.
	MaxPage = 500
	// maxScan bounds the objects that are looked at for a page. A page may then
	// have fewer objects than its limit, or none, and still say that there are
	// more.
	maxScan = 4000
	// visitObjects bounds the objects that one visit of the coordinator's state
	// renders, as VisitScan those that it looks at.
	visitObjects = 50
)

// Selection is a page of a list as a caller asks for it. The zero value is the
// first page of all objects.
type Selection struct {
	Labels    LabelSelector
	Fields    FieldSelector
	Limit     int // of a page; 0 = the default
	after     string
	continues bool
}

// Select reads one parameter: labelSelector, fieldSelector, limit or continue. The
// error says what is wanted instead of the value.
func (q *Selection) Select(name, value string) (err error) {
	switch name {
	case "labelSelector":
		q.Labels, err = parseLabelSelector(value)
	case "fieldSelector":
		q.Fields, err = parseFieldSelector(value)
	case "limit":
		q.Limit, err = strconv.Atoi(value)
		if err != nil || q.Limit < 0 {
			err = fmt.Errorf("want a whole number; 0 and more than %d are %d", MaxPage, MaxPage)
		}
	case "continue":
		if value != "" {
			q.after, err = DecodeContinue(value)
			q.continues = err == nil
		}
	default:
		err = fmt.Errorf("want labelSelector, fieldSelector, limit or continue")
	}
	return err
}

// PageOf is the page that a selection asks for.
func (l Listed[T]) PageOf(q *Selection) Page[T] {
	p := Page[T]{Limit: q.pageLimit()}
	if q.continues {
		p.After = q.after
	}
	if len(q.Labels) > 0 || len(q.Fields) > 0 {
		p.Match = func(v *T) bool { return q.Labels.matches(l.Meta(v).Labels) && l.matches(v, q.Fields) }
	}
	return p
}

// pageLimit is the number of objects of a page: as many as were asked for, and
// no more than there may be.
func (q *Selection) pageLimit() int {
	if q.Limit == 0 {
		return MaxPage
	}
	return min(q.Limit, MaxPage)
}

// Position is where an object stands in a list: namespace, then name.
func Position(m *api.ObjectMeta) string { return m.Namespace + "/" + m.Name }

// EncodeContinue makes the token of a position.
func EncodeContinue(position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte("1:" + position))
}

// DecodeContinue reads the token of a position.
func DecodeContinue(token string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	after, versioned := strings.CutPrefix(string(raw), "1:")
	if err != nil || !versioned || strings.Count(after, "/") != 1 {
		return "", fmt.Errorf("not a token that a list returned")
	}
	return after, nil
}

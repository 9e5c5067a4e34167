package service

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Bounds of one page of a list.
const (
	// MaxPage is the default and the greatest number of objects of a page.
	MaxPage = 500
	// MaxScan bounds the objects that are looked at for a page. A page may then
	// have fewer objects than its limit, or none, and still say that there are
	// more.
	MaxScan = 4000
)

// Selection is a page of a list as a caller asks for it. The zero value is the
// first page of all objects.
type Selection struct {
	Labels    LabelSelector
	Fields    FieldSelector
	Limit     int // of a page; 0 = the default
	after     string
	at        resource.Revision // of the list that goes on
	continues bool
	asOf      AsOf
	giver     *Principal
}

// SeenBy restricts the selection to the objects that a caller sees, where an object
// gives a role.
func (q *Selection) SeenBy(p Principal) { q.giver = &p }

// Select reads one parameter: labelSelector, fieldSelector, limit, continue or
// resourceVersion. The error names the values that are possible.
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
			q.after, q.at, err = DecodeContinue(value)
			q.continues = err == nil
		}
	case "resourceVersion":
		q.asOf, err = ParseAsOf(value)
	default:
		err = fmt.Errorf("want labelSelector, fieldSelector, limit, continue or resourceVersion")
	}
	return err
}

// AsOf is the state that resourceVersion asks for.
func (q *Selection) AsOf() AsOf { return q.asOf }

// PageOf is the page that a selection asks for.
func (l Listed[T]) PageOf(q *Selection) Page[T] {
	p := Page[T]{Limit: q.pageLimit(), AsOf: q.asOf}
	if q.continues {
		p.After, p.At = q.after, q.at
	}
	if len(q.Labels) > 0 || len(q.Fields) > 0 || l.Gives != nil {
		p.Match = func(v *T) bool {
			return q.Labels.matches(l.Meta(v).Labels) && l.matches(v, q.Fields) && l.sees(q.giver, v)
		}
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

// EncodeContinue makes the token of a position in the list of a revision.
func EncodeContinue(position, resourceVersion string) string {
	return base64.RawURLEncoding.EncodeToString([]byte("2:" + resourceVersion + ":" + position))
}

// DecodeContinue reads the token of a position. One of an older version has no
// revision: that list goes on with the newest one.
func DecodeContinue(token string) (after string, at resource.Revision, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	text := string(raw)
	if rest, is := strings.CutPrefix(text, "2:"); is && err == nil {
		var revision string
		revision, after, _ = strings.Cut(rest, ":")
		var number int64
		if revision != "" {
			number, err = strconv.ParseInt(revision, 10, 64)
		}
		at = resource.Revision(number)
		if number < 0 {
			err = strconv.ErrRange
		}
	} else if after, is = strings.CutPrefix(text, "1:"); !is {
		after = ""
	}
	if err != nil || strings.Count(after, "/") != 1 {
		return "", 0, fmt.Errorf("not a token that a list returned")
	}
	return after, at, nil
}

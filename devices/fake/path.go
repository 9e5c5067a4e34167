package fake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// level is where a reader of JSON stands in one list or object.
type level struct {
	inList  bool
	index   int    // in a list
	key     string // in an object
	keyNext bool
}

// enter notes a token of the level and reports whether it is a value.
func (l *level) enter(token json.Token) (value bool) {
	switch {
	case l.inList:
		l.index++
	case l.keyNext:
		l.key, _ = token.(string)
		l.keyNext = false
		return false
	default:
		l.keyNext = true
	}
	return true
}

// pathAt is the path of the value of a JSON text that the byte before offset
// belongs to, such as gpus[1].numaNode.
func pathAt(text []byte, offset int64) string {
	var levels []level
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		token, err := decoder.Token()
		if err != nil {
			return fmt.Sprintf("byte %d", offset)
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if len(levels) > 0 && !levels[len(levels)-1].enter(token) {
			continue
		}
		if decoder.InputOffset() >= offset {
			return join(levels)
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{keyNext: true})
		case json.Delim('['):
			levels = append(levels, level{inList: true, index: -1})
		}
	}
}

func join(levels []level) string {
	if len(levels) == 0 {
		return "the profile"
	}
	var path strings.Builder
	for i, l := range levels {
		switch {
		case l.inList:
			fmt.Fprintf(&path, "[%d]", l.index)
		case i > 0:
			path.WriteString("." + l.key)
		default:
			path.WriteString(l.key)
		}
	}
	return path.String()
}

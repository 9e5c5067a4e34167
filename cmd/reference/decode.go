package reference

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota/quotajson"
)

// timed adapts a decoder that returns a time to live as well.
func timed[T any](decode func([]byte) (T, time.Duration, *api.Status)) func([]byte) error {
	return func(doc []byte) error {
		if _, _, status := decode(doc); status != nil {
			return status
		}
		return nil
	}
}

// decodeTree reads a tree as a coordinator does: the document, then its spec.
func decodeTree(doc []byte) error {
	if _, status := api.DecodeQuotaTree(doc); status != nil {
		return status
	}
	_, err := quotajson.Tree(doc, quotajson.Natural)
	return err
}

func decodeConsumer(doc []byte) error {
	_, _, err := quotajson.Consumer(doc, quotajson.Natural)
	return err
}

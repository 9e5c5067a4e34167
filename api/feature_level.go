package api

import (
	"net/http"

	"github.com/musterd/muster/api/internal/strict"
)

// KindFeatureLevel is the kind of a FeatureLevel document.
const KindFeatureLevel = "FeatureLevel"

// FeatureLevel is the feature level of the cluster. Nothing lowers the level.
type FeatureLevel struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" default:"FeatureLevel" oneof:"FeatureLevel"`
	// Level is the level of the cluster, 0 before the first raise.
	Level int `json:"level" example:"1"`
	// Newest is the newest level of the coordinator that answers.
	Newest int `json:"newest" example:"2"`
	// Features are the names of the features up to the newest level.
	Features []FeatureOfLevel `json:"features,omitempty"`
	// Behind are the coordinators and nodes below the newest level: each one prevents the
	// raise.
	Behind []BehindLevel `json:"behind,omitempty"`
}

// FeatureOfLevel is a feature with the level that turns the feature on.
type FeatureOfLevel struct {
	// Level is the first level with the feature.
	Level int `json:"level" example:"2"`
	// Name is the name of the feature.
	Name string `json:"name" example:"reservations"`
}

// BehindLevel is a coordinator or a node below the newest level.
type BehindLevel struct {
	// Kind is Coordinator or Node.
	Kind string `json:"kind" oneof:"Coordinator,Node"`
	// Name is the name of the coordinator or of the node.
	Name string `json:"name" example:"gpu-1"`
	// Level is the newest level of the program there, 0 for a program from before levels.
	Level int `json:"level" example:"1"`
}

// FeatureLevelPatch is a merge patch (RFC 7386) of the feature level.
type FeatureLevelPatch struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind,omitempty" oneof:"FeatureLevel"`
	// Level is the new level. The level of the cluster already changes nothing.
	Level int `json:"level" required:"true" minimum:"1" example:"2"`
}

var featureLevelPatchDecoder = strict.For[FeatureLevelPatch]()

// DecodeFeatureLevelPatch reads and validates a raise of the feature level.
func DecodeFeatureLevelPatch(doc []byte) (FeatureLevelPatch, *Status) {
	p, status := decode(featureLevelPatchDecoder, doc)
	if status == nil {
		status = checkKind(p.APIVersion, p.Kind, KindFeatureLevel)
	}
	if status == nil {
		status = p.Validate()
	}
	if status != nil {
		return FeatureLevelPatch{}, status
	}
	return *p, nil
}

// Validate refuses a level below 1.
func (p FeatureLevelPatch) Validate() *Status {
	if p.Level < 1 {
		return invalid("level", "%d: want 1 or more", p.Level)
	}
	return nil
}

// Raisable is the refusal of a raise to a level below the cluster's or above the newest,
// else nil.
func (l *FeatureLevel) Raisable(want int) *Status {
	switch {
	case want < l.Level:
		return Errorf(http.StatusConflict, "the feature level is %d: nothing lowers the level", l.Level)
	case want > l.Newest:
		return Errorf(http.StatusConflict, "feature level %d: this coordinator knows levels up to %d; install a version with that level on all hosts", want, l.Newest)
	}
	return nil
}

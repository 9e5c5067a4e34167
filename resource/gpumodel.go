package resource

import (
	"fmt"
	"slices"
	"strings"
)

// gpuModelPrefix begins the names under which quotas count the devices of one model.
const gpuModelPrefix = string(GPU) + "."

// MaxGPUModel is the most bytes of a short model name.
const MaxGPUModel = 40

// GPUOf is the name under which devices of a product are charged beside GPU:
// "nvidia.com/gpu.h100" for "NVIDIA H100 80GB HBM3". Its base unit is that of GPU, and no
// host hands it out by itself.
func GPUOf(product string) Name { return Name(gpuModelPrefix + ShortGPUModel(product)) }

// GPUModel returns the short model name where the name is of devices of one model. ok is
// false for every other name; the error is for a wrong name: a model has a single
// spelling, that of ShortGPUModel.
func (n Name) GPUModel() (model string, ok bool, err error) {
	model, found := strings.CutPrefix(string(n), gpuModelPrefix)
	if !found {
		return "", false, nil
	}
	switch short := ShortGPUModel(model); {
	case short == model:
		return model, true, nil
	case model == "" || slices.Contains(notModels, model):
		return "", true, fmt.Errorf("%q names no model of GPUs: want one as in %sh100", string(n), gpuModelPrefix)
	default:
		return "", true, fmt.Errorf("%q: want the spelling %q", clip(string(n)), gpuModelPrefix+short)
	}
}

// IsGPUModel reports whether the name is of devices of one model, rightly spelt.
func IsGPUModel(name Name) bool {
	_, ok, err := name.GPUModel()
	return ok && err == nil
}

// Charge returns the charge of the request to quotas: its Vector, and the devices by their
// model where it names one.
func (r Request) Charge() Vector {
	v := r.Vector()
	if m := r.GPUMilli(); m > 0 && r.GPUModel != "" {
		v[GPUOf(r.GPUModel)] = int64(m)
	}
	return v
}

// TakesAnyModel reports whether the model of the request's GPUs is known only once it has
// a place.
func (r *Request) TakesAnyModel() bool { return r.GPUModel == "" && (r.GPUs > 0 || r.GPUShare > 0) }

// ShortGPUModel is the normal form of a product's name as the driver has it: words of
// lower-case letters and digits, joined by "-", without maker, memory and form factor, so
// that all variants of one model are one name. It is 1 to MaxGPUModel bytes, "unknown" for
// a product without a letter or digit, and the normal form of itself.
func ShortGPUModel(product string) string {
	words := strings.FieldsFunc(strings.ToLower(product), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	kept := slices.DeleteFunc(slices.Clone(words), isVariantWord)
	if len(kept) == 0 {
		kept = words
	}
	short := ""
	for _, w := range kept {
		switch {
		case short == "":
			short = w[:min(len(w), MaxGPUModel)]
		case len(short)+1+len(w) <= MaxGPUModel:
			short += "-" + w
		default:
			return short
		}
	}
	switch {
	case short == "":
		return "unknown"
	case slices.Contains(notModels, short):
		return short + "-gpu"
	}
	return short
}

// notModels are the last parts of labels and resources of NVIDIA that begin as names of
// models do (nvidia.com/gpu.product).
var notModels = []string{"compute", "count", "deploy", "family", "machine", "memory", "mode", "present", "product", "replicas", "shared", "sharing"}

// variantWords are the words of a product's name that distinguish no models: the maker,
// the form factor, the cooling.
var variantWords = []string{"nvidia", "tesla", "generation", "pcie", "sxm", "nvl", "ac", "lc"}

// isVariantWord reports whether a word of a product's name distinguishes no models.
func isVariantWord(word string) bool {
	if slices.Contains(variantWords, word) {
		return true
	}
	stem := strings.TrimRight(word, "0123456789")
	switch {
	case stem == "sxm" || stem == "hbm" || stem == "gddr", strings.TrimRight(strings.TrimSuffix(word, "e"), "0123456789") == "hbm":
		return true
	}
	unit := strings.TrimLeft(word, "0123456789")
	return len(unit) < len(word) && (unit == "gb" || unit == "g" || unit == "gib")
}

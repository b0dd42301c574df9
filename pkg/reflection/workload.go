// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// labels are the entries that are valid labels of Nodes.
func (b block) labels(field string) map[string]string {
	out := map[string]string{}
	pairs := b.pairs(field, maxLabels)
	for _, key := range sortedKeys(pairs) {
		value := pairs[key]
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			b.note(field, key+"="+value, "The entry is not a label of Kubernetes")
			continue
		}
		out[key] = value
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// effects are those of Kubernetes by the names that clouds give them.
var effects = map[string]string{
	"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute", "PREFER_NO_SCHEDULE": "PreferNoSchedule",
	"NoSchedule": "NoSchedule", "NoExecute": "NoExecute", "PreferNoSchedule": "PreferNoSchedule",
}

// taint adds a taint. One that is not valid is reported: a taint that is left out silently would be a wrong answer.
func (b block) taint(into []Taint, key, value, effect string) []Taint {
	known, ok := effects[effect]
	if !ok || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
		b.note("taint", fmt.Sprintf("%s=%s:%s", key, value, effect), "The entry is not a taint of Kubernetes")
		return into
	}
	return append(into, Taint{Key: key, Value: value, Effect: known})
}

// parseTaint reads "key=value:effect" and "key:effect".
func (b block) parseTaint(into []Taint, s string) []Taint {
	at := strings.LastIndex(s, ":")
	if at < 0 {
		return b.taint(into, s, "", "")
	}
	key, value, _ := strings.Cut(s[:at], "=")
	return b.taint(into, key, value, s[at+1:])
}

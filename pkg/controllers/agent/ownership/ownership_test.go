// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestClassify(t *testing.T) {
	us := Source{Identifier: "w1", Namespace: "foo"}
	for name, tc := range map[string]struct {
		reason      string
		us          Source
		absent      bool
		annotations map[string]string
		want        State
	}{
		"None":  {reason: "A missing object has no owner.", us: us, absent: true, want: None},
		"Ours":  {reason: "Both annotations are ours.", us: us, annotations: us.Annotations(), want: Ours},
		"Other": {reason: "Another cluster.", us: us, annotations: Source{Identifier: "w2", Namespace: "foo"}.Annotations(), want: Foreign},
		"OtherNamespace": {
			reason: "Another namespace of the same cluster is as foreign as another cluster.",
			us:     us, annotations: Source{Identifier: "w1", Namespace: "bar"}.Annotations(), want: Foreign,
		},
		"Unowned":    {reason: "An object without annotations is not free for the taking.", us: us, annotations: map[string]string{"a": "b"}, want: Unowned},
		"HalfNamed":  {reason: "Half a source is no known source.", us: us, annotations: map[string]string{fleetv1alpha1.SourceUIDAnnotation: "w1"}, want: Foreign},
		"Anonymous":  {reason: "A cluster without identifier owns nothing.", us: Source{Identifier: "", Namespace: "foo"}, annotations: Source{Identifier: "", Namespace: "foo"}.Annotations(), want: Foreign},
		"CaseFolded": {reason: "Identifiers are compared as they are.", us: us, annotations: Source{Identifier: "W1", Namespace: "foo"}.Annotations(), want: Foreign},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &metav1.ObjectMeta{Annotations: tc.annotations}
			if got := Classify(!tc.absent, obj, tc.us); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
)

func TestClusters(t *testing.T) {
	f, ns := start(t)
	f.enroll(t, ns, "well")
	f.enroll(t, ns, "refusing",
		metav1.Condition{Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonConnected},
		metav1.Condition{Type: fleetv1alpha1.ConditionKindsServed, Status: metav1.ConditionFalse, Reason: fleetv1alpha1.ReasonDefinitionsRefused, Message: "Definitions refused: a.b (ClaimsForbidden)"})
	f.enroll(t, ns, "dead", metav1.Condition{
		Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionFalse,
		Reason: fleetv1alpha1.ReasonDialError, Message: "refused\x1b[2J the connection",
	})
	f.report(t, types.NamespacedName{Namespace: ns, Name: "kubeconfig-dead"}, now().Add(-90*time.Second))
	f.enroll(t, ns, "shaky", metav1.Condition{Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionUnknown, Reason: fleetv1alpha1.ReasonDialError})
	apply(t, f.hub, `{apiVersion: v1, kind: Secret, metadata: {name: new, namespace: `+ns+`, labels: {masthead.dev/enroll: "true"}}}`)

	out, errOut, code := f.run(t, "clusters", "-o", "wide")
	if code != 0 {
		t.Fatal(errOut)
	}
	for name, tc := range map[string]struct{ reason, want string }{
		"well":     {reason: "It is connected.", want: `Connected +Connected +NS +v1\.36\.3 +now +NS-well +Connected`},
		"refusing": {reason: "A connected cluster can have something that is not well.", want: `Connected +DefinitionsRefused +NS +v1\.36\.3 +now .*a\.b \(ClaimsForbidden\)`},
		"dead":     {reason: "It says since when, and nothing that a terminal obeys.", want: `NotConnected +DialError +NS +v1\.36\.3 +90s ago +NS-dead +refused the connection`},
		"shaky":    {reason: "It is not decided yet.", want: `Degraded +DialError +NS +v1\.36\.3 +<unknown>`},
		"new":      {reason: "No manager has published it.", want: `Unknown +NotPublished +default +<none> +<unknown>`},
	} {
		pattern := `(?m)^kubeconfig/NS/` + name + ` +` + tc.want
		if !regexp.MustCompile(strings.ReplaceAll(pattern, "NS", ns)).MatchString(out) {
			t.Errorf("%s want a line %s in:\n%s", tc.reason, pattern, out)
		}
	}

	out, errOut, code = f.run(t, "clusters", ns+"/dead", "-o", "json")
	var got []fleet.Cluster
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || len(got) != 1 || got[0].Reason != fleetv1alpha1.ReasonDialError {
		t.Errorf("want one cluster as JSON, got %v %s\n%s", err, errOut, out)
	}
	if got[0].Message != "refused\x1b[2J the connection" || strings.Contains(out, "\x1b") {
		t.Errorf("JSON means what the object says, and does nothing to a terminal, got %q", out)
	}
	if _, errOut, code = f.run(t, "clusters", "nosuch"); code != exitFailed || !strings.Contains(errOut, `there is no cluster "nosuch"; there are: `) {
		t.Errorf("an unknown name is an error, got %d %s", code, errOut)
	}
	if _, errOut, code = f.run(t, "clusters", "-o", "xml"); code != exitMisused || !strings.Contains(errOut, "allowed formats are: table,wide,json,yaml") {
		t.Errorf("an unknown format is an error, got %d %s", code, errOut)
	}
}

func TestHelpHasExamples(t *testing.T) {
	for _, c := range newRoot(Options{}).Commands() {
		if c.Example == "" || c.Short == "" || c.Long == "" {
			t.Errorf("%s has no example, or does not say what it does", c.Name())
		}
	}
}

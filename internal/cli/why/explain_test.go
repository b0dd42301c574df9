// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// reported is a thing with one finding about it from elsewhere.
func reported(name string, f Finding, needs ...*Thing) *Thing {
	return &Thing{Ref: Ref{Where: "hub", Kind: "X", Name: name}, Role: RoleObject, Reported: []Finding{f}, Needs: needs}
}

func TestExplain(t *testing.T) {
	fine := Finding{}
	own := func(s Severity) Finding { return Finding{Severity: s, Reason: "Own"} }
	derived := func(s Severity) Finding { return Finding{Severity: s, Reason: "Derived", Derived: true} }
	for name, tc := range map[string]struct {
		reason string
		root   *Thing
		want   []string
		unseen []string
	}{
		"Well":          {reason: "Nothing is wrong.", root: reported("a", fine, reported("b", fine))},
		"Explained":     {reason: "What only follows is no cause.", root: reported("a", derived(Failed), reported("b", derived(Failed), reported("c", own(Waiting)))), want: []string{"c"}},
		"NotExplained":  {reason: "There is no deeper cause.", root: reported("a", derived(Failed), reported("b", fine)), want: []string{"a"}},
		"OwnAbove":      {reason: "What has failed by itself comes before what merely waits below it.", root: reported("a", derived(Waiting), reported("b", own(Failed), reported("c", derived(Waiting)))), want: []string{"b", "c"}},
		"Deepest":       {reason: "Of two that are equally bad the deepest is first.", root: reported("a", own(Failed), reported("b", own(Failed))), want: []string{"b", "a"}},
		"Blocked":       {reason: "Nothing works behind a dead cluster, regardless of earlier failures.", root: reported("a", derived(Failed), reported("b", own(Blocked)), reported("c", fine, reported("d", own(Failed)))), want: []string{"b", "d"}},
		"Order":         {reason: "Otherwise it is the order in which people would look.", root: reported("a", fine, reported("c", own(Failed)), reported("b", own(Failed))), want: []string{"c", "b"}},
		"Unseen":        {reason: "What could not be looked at explains nothing.", root: reported("a", derived(Failed), reported("b", own(Unseen))), want: []string{"a"}, unseen: []string{"b"}},
		"OnlyUnseen":    {reason: "What could not be queried is not reported to be well.", root: reported("a", own(Unseen)), unseen: []string{"a"}},
		"AcrossBetween": {reason: "What is well in between hides nothing.", root: reported("a", derived(Failed), reported("b", fine, reported("c", own(Failed)))), want: []string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Explain(tc.root)
			names := func(causes []Cause) (out []string) {
				for _, c := range causes {
					out = append(out, c.Name)
				}
				return out
			}
			if diff := cmp.Diff(tc.want, names(got.Causes)); diff != "" {
				t.Errorf("%s %s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.unseen, names(got.NotLookedAt)); diff != "" {
				t.Errorf("%s %s", tc.reason, diff)
			}
			if got.OK != (len(tc.want)+len(tc.unseen) == 0) {
				t.Errorf("%s OK is %v", tc.reason, got.OK)
			}
		})
	}
}

func TestFindings(t *testing.T) {
	type found struct {
		Severity Severity
		Reason   string
		Derived  bool
	}
	for name, tc := range map[string]struct {
		reason string
		role   Role
		absent Absence
		of     For
		object string
		want   []found
	}{
		"ClaimWell":        {reason: "It is ready.", role: RoleClaim, object: `{status: {conditions: [{type: AgentSynced, status: "True"}, {type: Ready, status: "True"}]}}`},
		"ClaimFailing":     {reason: "That it is not known whether it is synced is its own failure.", role: RoleClaim, object: `{status: {conditions: [{type: AgentSynced, status: Unknown, reason: SyncFailing}]}}`, want: []found{{Failed, "SyncFailing", false}}},
		"ClaimPaused":      {reason: "Its owner wants it so, and nothing below says more.", role: RoleClaim, object: `{status: {conditions: [{type: AgentSynced, status: "False", reason: ReconcilePaused}]}}`, want: []found{{Waiting, "ReconcilePaused", false}}},
		"ClaimMoving":      {reason: "It passes by itself, and what holds the object is below.", role: RoleClaim, object: `{status: {conditions: [{type: AgentSynced, status: "False", reason: Moving}]}}`, want: []found{{Waiting, "Moving", true}}},
		"ClaimHidesHub":    {reason: "What the hub said last counts for nothing while it is not synchronised.", role: RoleClaim, object: `{status: {conditions: [{type: AgentSynced, status: "False", reason: Conflict}, {type: Ready, status: "False"}]}}`, want: []found{{Failed, "Conflict", false}}},
		"ClaimUnseen":      {reason: "No manager has reported on it, and the cluster below says why.", role: RoleClaim, object: `{}`, want: []found{{Waiting, "NobodyLooked", true}}},
		"ManagedFailing":   {reason: "Synced is the provider's own word.", role: RoleHub, object: `{status: {conditions: [{type: Synced, status: "False", reason: ReconcileError}, {type: Ready, status: "False", reason: Creating}]}}`, want: []found{{Failed, "ReconcileError", false}}},
		"ManagedAsync":     {reason: "Providers that work asynchronously say it elsewhere.", role: RoleHub, object: `{status: {conditions: [{type: Synced, status: "True"}, {type: LastAsyncOperation, status: "False", reason: AsyncCreateFailure}]}}`, want: []found{{Failed, "AsyncCreateFailure", false}}},
		"ManagedCreating":  {reason: "It takes its time.", role: RoleHub, object: `{status: {conditions: [{type: Synced, status: "True"}, {type: Ready, status: "False", reason: Creating}]}}`, want: []found{{Waiting, "Creating", true}}},
		"ManagedUntouched": {reason: "No provider has looked at it.", role: RoleHub, object: `{}`, want: []found{{Waiting, "NobodyLooked", true}}},
		"ManagedDeleting":  {reason: "What it waits for is named.", role: RoleHub, object: `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [a/b]}}`, want: []found{{Waiting, "DeletionWaits", true}}},
		"HolderIsFine":     {reason: "The state of a name's holder does not matter.", role: RoleHolder, object: `{status: {conditions: [{type: Synced, status: "False"}]}}`},
		"ProfileEmpty":     {reason: "No manager has written it.", role: RoleCluster, object: `{}`, want: []found{{Blocked, "NobodyLooked", true}}},
		"ProfileDegraded":  {reason: "Writes fail while probes do.", role: RoleCluster, object: `{status: {conditions: [{type: Connected, status: Unknown, reason: DialError}]}}`, want: []found{{Blocked, "DialError", false}}},
		"OtherDefinition":  {reason: "Another definition has nothing to do with the claim.", role: RoleCluster, of: For{Use: UseClaims, Definition: "a.b"}, object: `{status: {conditions: [{type: Connected, status: "True"}, {type: KindsServed, status: "False", reason: DefinitionsRefused, message: "Definitions refused: a.b.c (Y), xa.b (ClaimsForbidden)"}]}}`},
		"ItsDefinition":    {reason: "Its own says why.", role: RoleCluster, of: For{Use: UseClaims, Definition: "a.b"}, object: `{status: {conditions: [{type: Connected, status: "True"}, {type: KindsServed, status: "False", reason: DefinitionsRefused, message: "Definitions refused: a.a (X), a.b (ClaimsForbidden)"}]}}`, want: []found{{Failed, "ClaimsForbidden", false}}},
		"AnyDefinition":    {reason: "A question about the cluster covers all its definitions.", role: RoleCluster, object: `{status: {conditions: [{type: Connected, status: "True"}, {type: KindsServed, status: "False", reason: DefinitionsRefused, message: "Definitions refused: c.d (X)"}]}}`, want: []found{{Failed, "DefinitionsRefused", false}}},
		"ClassDisabled":    {reason: "Nothing is done about claims.", role: RoleClass, of: For{Use: UseClaims}, object: `{spec: {agent: {mode: Disabled}, applications: {mode: Disabled}}}`, want: []found{{Blocked, "SwitchedOff", false}}},
		"ClassOfOther":     {reason: "What the question does not cover may be off.", role: RoleClass, of: For{Use: UseClaims}, object: `{spec: {agent: {mode: ReadWrite}, applications: {mode: Disabled}}}`},
		"ClassGone":        {reason: "Without its class a cluster is not connected.", role: RoleClass, absent: NotFound, want: []found{{Blocked, "NotFound", false}}},
		"SecretGone":       {reason: "Without credentials there is no connection.", role: RoleKubeconfig, absent: NotFound, want: []found{{Blocked, "NotFound", false}}},
		"NotLooked":        {reason: "That is no failure.", role: RoleKubeconfig, absent: NotLooked, want: []found{{Unseen, "NotLookedAt", false}}},
		"Paused":           {reason: "Its owner paused it.", role: RoleEnrolled, object: `{kind: Cluster, metadata: {labels: {masthead.dev/enroll: "true"}}, spec: {paused: true}, status: {initialization: {controlPlaneInitialized: true}}}`, want: []found{{Blocked, "Paused", false}}},
		"PausedByImport":   {reason: "The pause of an import is not the user's.", role: RoleEnrolled, object: `{kind: Cluster, metadata: {labels: {masthead.dev/enroll: "true"}, annotations: {fleet.masthead.dev/import-paused: u}}, spec: {paused: true}, status: {initialization: {controlPlaneInitialized: true}}}`},
		"Provisioning":     {reason: "Cluster API says what it waits for.", role: RoleEnrolled, object: `{kind: Cluster, metadata: {labels: {masthead.dev/enroll: "true"}}, status: {conditions: [{type: InfrastructureReady, status: "False", reason: NoQuota}]}}`, want: []found{{Failed, "NoQuota", false}}},
		"NotOffered":       {reason: "Crossplane does not offer the claim.", role: RolePublisher, object: `{status: {conditions: [{type: Established, status: "True"}, {type: Offered, status: "False", reason: TerminatingCompositeResourceClaim}]}}`, want: []found{{Failed, "TerminatingCompositeResourceClaim", false}}},
		"ApplicationOld":   {reason: "What was said of an older generation counts for nothing.", role: RoleApplication, object: `{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`, want: []found{{Waiting, "NobodyLooked", true}}},
		"ApplicationOwn":   {reason: "A right that is missing is no component's.", role: RoleApplication, object: `{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: Unknown, reason: HealthCheckForbidden}]}}`, want: []found{{Failed, "HealthCheckForbidden", false}}},
		"ImportManaged":    {reason: "Something else manages the cluster.", role: RoleImport, object: `{status: {conditions: [{type: AlreadyManaged, status: "True", reason: NameTaken}, {type: Ready, status: "False", reason: NameTaken}]}}`, want: []found{{Blocked, "NameTaken", false}}},
		"ImportIdle":       {reason: "No manager reconciles imports.", role: RoleImport, object: `{}`, want: []found{{Failed, "NobodyLooked", false}}},
		"ImportRights":     {reason: "A right is missing in the hub.", role: RoleImport, object: `{status: {conditions: [{type: Ready, status: "False", reason: RightsMissing}]}}`, want: []found{{Failed, "RightsMissing", false}}},
		"FieldMissing":     {reason: "The object that is referenced is there, and has no value.", role: RoleObject, object: `{apiVersion: v1, kind: ConfigMap, status: {conditions: [{type: ReferencesResolved, status: "False", reason: FieldNotFound}]}}`, want: []found{{Failed, "FieldNotFound", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			thing := &Thing{Role: tc.role, Absent: tc.absent, For: tc.of}
			if tc.absent == Present {
				thing.Object = &unstructured.Unstructured{}
				document, err := yaml.YAMLToJSON([]byte(tc.object))
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(document, &thing.Object.Object); err != nil {
					t.Fatal(err)
				}
			}
			var got []found
			for _, f := range findings(thing) {
				got = append(got, found{f.Severity, f.Reason, f.Derived})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s %s", tc.reason, diff)
			}
		})
	}
}

func TestComponentFinding(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		health  appsv1alpha1.Health
		word    string
		want    Severity
		derived bool
	}{
		"Healthy":   {reason: "Nothing is wrong.", health: appsv1alpha1.HealthHealthy, want: Fine},
		"Missing":   {reason: "Nothing is there that could say more.", health: appsv1alpha1.HealthMissing, word: appsv1alpha1.ReasonNotFound, want: Failed},
		"Degraded":  {reason: "The object says more.", health: appsv1alpha1.HealthDegraded, want: Failed, derived: true},
		"Forbidden": {reason: "A right is missing.", health: appsv1alpha1.HealthUnknown, word: appsv1alpha1.ReasonKindForbidden, want: Failed},
		"Syncing":   {reason: "It is being read.", health: appsv1alpha1.HealthUnknown, word: appsv1alpha1.ReasonSyncing, want: Waiting, derived: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := ComponentFinding(tc.health, tc.word, "")
			if got.Severity != tc.want || got.Derived != tc.derived {
				t.Errorf("%s got %+v", tc.reason, got)
			}
		})
	}
}

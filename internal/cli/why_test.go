// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/why"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// arranged is a failure on real API servers. NS is the namespace, in both clusters, and the name of the class.
type arranged struct {
	reason string

	// hub and workload are the existing objects, cluster the conditions of the workload cluster w1.
	hub, workload []string
	cluster       []metav1.Condition

	// notEnrolled leaves out the cluster w1.
	notEnrolled bool

	ask []string

	// The first cause: where it is, of which object, and its reason; then a part of its message.
	where, object, why, message string
}

const (
	arrangedClass = `{apiVersion: fleet.masthead.dev/v1alpha1, kind: EnrollmentClass, metadata: {name: NS},
 spec: {allowedNamespaces: {list: [NS]}, agent: {defaultTargetNamespace: NS}, applications: {mode: Enabled}}}`

	arrangedXRD = `{apiVersion: apiextensions.crossplane.io/v1, kind: CompositeResourceDefinition, metadata: {name: xdatabases.db.test.dev},
 spec: {group: db.test.dev, claimNames: {kind: Database, plural: databases}, names: {kind: XDatabase, plural: xdatabases}, versions: [{name: v1, served: true, referenceable: true}]},
 status: {conditions: [{type: Established, status: "True"}, {type: Offered, status: "True"}]}}`

	arrangedSyncedClaim = `{apiVersion: db.test.dev/v1, kind: Database, metadata: {name: sql, namespace: NS},
 status: {conditions: [{type: AgentSynced, status: "True", reason: Synced}, {type: Synced, status: "True"}, {type: Ready, status: "False", reason: Waiting}]}}`

	arrangedInHub = `{apiVersion: db.test.dev/v1, kind: Database, metadata: {name: sql, namespace: NS, annotations: {
  agent.crossplane.io/source-uid: NS-w1, agent.crossplane.io/source-namespace: NS}}, spec: {resourceRef: {apiVersion: db.test.dev/v1, kind: XDatabase, name: sql-NS}},
 status: {conditions: [{type: Synced, status: "True"}, {type: Ready, status: "False", reason: Waiting, message: Composite resource claim is waiting for composite resource to become Ready}]}}`
)

// refusedClaim is a claim that Masthead does not carry to the hub.
func refusedClaim(why, message string) string {
	return `{apiVersion: db.test.dev/v1, kind: Database, metadata: {name: sql, namespace: NS},
 status: {conditions: [{type: AgentSynced, status: "False", reason: ` + why + `, message: '` + message + `'}, {type: Stalled, status: "True", reason: ` + why + `}]}}`
}

func arrangedFailures() map[string]arranged {
	whyClaim := []string{"why", "database", "sql", "-n", "NS", "--cluster", "NS/w1"}
	return map[string]arranged{
		"CompositionFails": {
			reason: "The composite says what failed; that it and its claim are not ready only follows.",
			hub: []string{arrangedInHub, `{apiVersion: db.test.dev/v1, kind: XDatabase, metadata: {name: sql-NS}, spec: {resourceRefs: [{apiVersion: cloud.test.dev/v1, kind: Bucket, name: b-NS}]},
 status: {conditions: [{type: Synced, status: "False", reason: ReconcileError, message: 'cannot compose resources: pipeline step "render" returned a fatal result'}, {type: Ready, status: "False", reason: Creating}]}}`,
				`{apiVersion: cloud.test.dev/v1, kind: Bucket, metadata: {name: b-NS}, status: {conditions: [{type: Synced, status: "True"}, {type: Ready, status: "False", reason: Creating}]}}`},
			workload: []string{arrangedSyncedClaim}, ask: whyClaim,
			where: "hub", object: "XDatabase sql-NS", why: "ReconcileError", message: `pipeline step "render"`,
		},
		"ProviderFails": {
			reason: "The deepest failure is the provider's.",
			hub: []string{arrangedInHub, `{apiVersion: db.test.dev/v1, kind: XDatabase, metadata: {name: sql-NS}, spec: {resourceRefs: [{apiVersion: cloud.test.dev/v1, kind: Bucket, name: b-NS}]},
 status: {conditions: [{type: Synced, status: "True"}, {type: Ready, status: "False", reason: Creating, message: 'Unready resources: bucket'}]}}`,
				`{apiVersion: cloud.test.dev/v1, kind: Bucket, metadata: {name: b-NS}, status: {conditions: [{type: Synced, status: "False", reason: ReconcileError, message: 'create failed: AccessDenied'}, {type: Ready, status: "False", reason: Creating}]}}`},
			workload: []string{arrangedSyncedClaim}, ask: whyClaim,
			where: "hub", object: "Bucket b-NS", why: "ReconcileError", message: "AccessDenied",
		},
		"MissingRights": {
			reason:   "Nothing is in the hub, because a right is missing.",
			workload: []string{refusedClaim("Forbidden", "Masthead lacks the right to patch databases.db.test.dev in the namespace \"NS\" of the hub.")}, ask: whyClaim,
			where: "w1", object: "Database NS/sql", why: "Forbidden", message: "lacks the right",
		},
		"NameConflict": {
			reason:   "Another cluster has the name. The state of its claim does not matter.",
			hub:      []string{strings.ReplaceAll(arrangedInHub, "NS-w1", "other")},
			workload: []string{refusedClaim("Conflict", "The name \"sql\" is taken")}, ask: whyClaim,
			where: "w1", object: "Database NS/sql", why: "Conflict", message: "is taken",
		},
		"DeadCluster": {
			reason:   "Nothing travels: what the claim said last explains nothing.",
			hub:      []string{arrangedInHub},
			workload: []string{arrangedSyncedClaim}, ask: whyClaim,
			cluster: []metav1.Condition{{Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionFalse, Reason: fleetv1alpha1.ReasonDialError, Message: "The API server refused the connection"}},
			where:   "hub", object: "ClusterProfile NS/kubeconfig-w1", why: "DialError", message: "refused the connection",
		},
		"RefusedDefinition": {
			reason: "The kind is not in the cluster, because the cluster refused its definition.",
			cluster: []metav1.Condition{
				{Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonConnected},
				{Type: fleetv1alpha1.ConditionKindsServed, Status: metav1.ConditionFalse, Reason: fleetv1alpha1.ReasonDefinitionsRefused, Message: "Definitions refused: others.db.test.dev (ClaimsForbidden), refuseds.db.test.dev (ForeignDefinition)"},
			},
			hub: []string{`{apiVersion: apiextensions.crossplane.io/v1, kind: CompositeResourceDefinition, metadata: {name: xrefuseds.NS},
 spec: {group: db.test.dev, claimNames: {kind: Refused, plural: refuseds}}, status: {conditions: [{type: Established, status: "True"}, {type: Offered, status: "True"}]}}`},
			ask:   []string{"why", "refused", "r", "-n", "NS", "--cluster", "NS/w1"},
			where: "hub", object: "ClusterProfile NS/kubeconfig-w1", why: "ForeignDefinition", message: "refuseds.db.test.dev",
		},
		"UnresolvedReference": {
			reason: "The object that is referenced does not exist.",
			workload: []string{`{apiVersion: db.test.dev/v1, kind: Database, metadata: {name: sql, namespace: NS},
 spec: {references: [{resource: configmaps, name: settings, fromFieldPath: data.region, toFieldPath: spec.region}]},
 status: {conditions: [{type: AgentSynced, status: "False", reason: ReferencesUnresolved, message: waits},
  {type: ReferencesResolved, status: "False", reason: SourceNotFound, message: 'Cannot resolve spec.references[0]: it does not exist'}]}}`},
			ask: whyClaim, where: "w1", object: "ConfigMap NS/settings", why: "NotFound",
		},
		"ImportNotObserved": {
			reason: "The provider says why it cannot observe.",
			hub: []string{`{apiVersion: fleet.masthead.dev/v1alpha1, kind: ClusterImport, metadata: {name: shop, namespace: NS},
 spec: {eks: {region: eu-central-1, clusterName: shop}, providerConfigRef: {name: aws}},
 status: {observedGeneration: 1, references: [{apiVersion: cloud.test.dev/v1, kind: Bucket, name: i-NS}], conditions: [
  {type: Observed, status: "False", reason: ProviderError, message: a managed resource cannot be observed, lastTransitionTime: "2026-11-23T10:00:00Z"},
  {type: Ready, status: "False", reason: ProviderError, message: a managed resource cannot be observed, lastTransitionTime: "2026-11-23T10:00:00Z"}]}}`,
				`{apiVersion: cloud.test.dev/v1, kind: Bucket, metadata: {name: i-NS}, spec: {forProvider: {}}, status: {conditions: [{type: Synced, status: "False", reason: ReconcileError, message: 'observe failed: ExpiredToken'}]}}`},
			ask:   []string{"why", "import", "shop", "-n", "NS"},
			where: "hub", object: "Bucket i-NS", why: "ReconcileError", message: "ExpiredToken",
		},
		"ClassNotAllowed": {
			reason: "The class does not take clusters of the namespace.",
			cluster: []metav1.Condition{{Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionFalse, Reason: fleetv1alpha1.ReasonNamespaceNotAllowed,
				Message: "The EnrollmentClass does not allow clusters of the namespace"}},
			ask:   []string{"why", "cluster", "NS/w1"},
			where: "hub", object: "ClusterProfile NS/kubeconfig-w1", why: "NamespaceNotAllowed", message: "does not allow",
		},
		"KubeconfigMissing": {
			reason: "The Secret is not there; that there are no credentials only follows.", notEnrolled: true,
			hub: []string{`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: w1, namespace: NS, labels: {masthead.dev/enroll: NS}},
 spec: {infrastructureRef: {apiGroup: infrastructure.test.dev, kind: X, name: w1}}, status: {initialization: {controlPlaneInitialized: true}}}`},
			ask:   []string{"why", "cluster", "NS/w1"},
			where: "hub", object: "Secret NS/w1-kubeconfig", why: "NotFound",
		},
		"ComponentDegraded": {
			reason: "The Pod says what the component's StatefulSet and the Application only pass on.",
			workload: []string{`{apiVersion: apps.masthead.dev/v1alpha1, kind: Application, metadata: {name: shop, namespace: NS}, spec: {selector: {}, components: {web: {group: apps, version: v1, kind: StatefulSet}}},
 status: {observedGeneration: 1, componentsInstalled: 1/1, ready: Unknown, health: Degraded, conditions: [{type: Ready, status: "False", reason: ComponentsDegraded, message: 'StatefulSet web: 0 of 1', lastTransitionTime: "2026-11-23T10:00:00Z"}],
  components: [{name: web, group: apps, version: v1, kind: StatefulSet, installed: "True", health: Degraded, reason: PodFailed, message: a Pod fails}]}}`},
			ask:   []string{"why", "app/shop", "-n", "NS", "--cluster", "NS/w1"},
			where: "w1", object: "Pod NS/web-0", why: "ImagePullBackOff", message: "cannot be pulled",
		},
		"ClassMissing": {
			reason:   "The class that the cluster names does not exist.",
			cluster:  []metav1.Condition{{Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionFalse, Reason: fleetv1alpha1.ReasonClassNotFound, Message: "There is no EnrollmentClass"}},
			workload: []string{refusedClaim("ClassNotFound", "The class does not exist")}, ask: whyClaim,
			where: "hub", object: "EnrollmentClass NS", why: "NotFound",
		},
		"NamespaceMissing": {
			reason: "The namespace in the hub does not exist.",
			workload: []string{`{apiVersion: db.test.dev/v1, kind: Database, metadata: {name: sql, namespace: NS, annotations: {}},
 status: {conditions: [{type: AgentSynced, status: "False", reason: TargetNamespaceMissing, message: 'The namespace does not exist'}]}}`},
			hub: []string{strings.Replace(arrangedClass, "defaultTargetNamespace: NS", "defaultTargetNamespace: nosuch", 1)}, ask: whyClaim,
			where: "hub", object: "Namespace nosuch", why: "NotFound",
		},
		"NotEnrolled": {
			reason: "No user enrolled it.", notEnrolled: true,
			hub: []string{`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: w9, namespace: NS},
 spec: {infrastructureRef: {apiGroup: infrastructure.test.dev, kind: X, name: w9}}, status: {initialization: {controlPlaneInitialized: true}}}`},
			ask:   []string{"why", "cluster", "w9", "-n", "NS"},
			where: "hub", object: "Cluster NS/w9", why: "NotEnrolled",
		},
	}
}

func TestWhyNamesTheTrueCauseFirst(t *testing.T) {
	f, _ := start(t)
	apply(t, f.hub, arrangedXRD)
	for name, tc := range arrangedFailures() {
		t.Run(name, func(t *testing.T) {
			_, ns := start(t)
			in := func(texts []string) []string {
				out := make([]string, len(texts))
				for i, text := range texts {
					out[i] = strings.ReplaceAll(text, "NS", ns)
				}
				return out
			}
			if name != "ClassMissing" && name != "NamespaceMissing" {
				apply(t, f.hub, in([]string{arrangedClass})...)
			}
			apply(t, f.hub, in(tc.hub)...)
			apply(t, f.workload, in(tc.workload)...)
			switch {
			case name == "KubeconfigMissing":
				f.publish(t, connection.Key{Source: "capi", Namespace: ns, Name: "w1"}, ns, metav1.Condition{
					Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionFalse,
					Reason: fleetv1alpha1.ReasonNoCredentials, Message: "There is no Secret with the kubeconfig",
				})
			case !tc.notEnrolled:
				f.enroll(t, ns, "w1", tc.cluster...)
			}
			if name == "ComponentDegraded" {
				failingPods(t, f, ns)
			}
			out, errOut, code := f.run(t, append(in(tc.ask), "-o", "json")...)
			var got why.Answer
			if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
				t.Fatalf("%d %v %s\n%s", code, err, errOut, out)
			}
			where := tc.where
			if where == "w1" {
				where = "kubeconfig/" + ns + "/w1"
			}
			want := strings.ReplaceAll(tc.object, "NS", ns) + " in " + where + ": " + tc.why
			if len(got.Causes) == 0 || got.Causes[0].String()+" in "+got.Causes[0].Where+": "+got.Causes[0].Reason != want ||
				!strings.Contains(got.Causes[0].Message, tc.message) {
				text, _, _ := f.run(t, in(tc.ask)...)
				t.Fatalf("%s want first: %s (%s), got:\n%s", tc.reason, want, tc.message, text)
			}
			if name == "DeadCluster" && len(got.Walk.Needs) == 0 {
				t.Error("the walk shows what was looked at")
			}
		})
	}
}

// failingPods creates a StatefulSet whose image does not exist, and its Pod.
func failingPods(t *testing.T, f *testFleet, ns string) {
	t.Helper()
	apply(t, f.workload, strings.ReplaceAll(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, namespace: NS},
 spec: {replicas: 1, serviceName: web, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: web, image: nosuch}]}}},
 status: {observedGeneration: 1, replicas: 1, readyReplicas: 0}}`, "NS", ns))
	set := f.object(t, "apps/v1", "StatefulSet", ns, "web")
	apply(t, f.workload, strings.NewReplacer("NS", ns, "UID", string(set.GetUID())).Replace(`{apiVersion: v1, kind: Pod,
 metadata: {name: web-0, namespace: NS, labels: {a: b}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: UID, controller: true}]},
 spec: {containers: [{name: web, image: nosuch}]},
 status: {phase: Pending, containerStatuses: [{name: web, image: nosuch, imageID: "", ready: false, restartCount: 0, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}],
  conditions: [{type: Ready, status: "False", reason: ContainersNotReady}]}}`))
}

func TestWhyForPeople(t *testing.T) {
	f, ns := start(t)
	apply(t, f.hub, strings.ReplaceAll(arrangedClass, "NS", ns))
	f.enroll(t, ns, "w1", metav1.Condition{
		Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionFalse,
		Reason: fleetv1alpha1.ReasonDialError, Message: "refused\x1b[2J\nClusterProfile: all is well",
	})
	out, errOut, code := f.run(t, "why", "cluster", ns+"/w1")
	want := strings.ReplaceAll(`Failed: ClusterProfile NS/kubeconfig-w1 in hub: DialError
  refused ClusterProfile: all is well
  Check the cluster's API server, the network between the hub and it, and the address in the kubeconfig.

ClusterProfile NS/kubeconfig-w1 (hub) Failed DialError
├─ EnrollmentClass NS (hub) OK
└─ Secret NS/w1 (hub) OK
`, "NS", ns)
	if code != 0 || out != want {
		t.Errorf("want:\n%s\ngot: %s\n%s", want, errOut, out)
	}
	if strings.Contains(out, "client-key") || strings.Contains(out, "\x1b") {
		t.Error("nothing secret is printed, and nothing that a terminal obeys")
	}
	if _, errOut, code = f.run(t, "why", "cluster"); code != exitMisused || !strings.Contains(errOut, "KIND NAME") {
		t.Errorf("a missing argument is an error, got %d %s", code, errOut)
	}
	if _, errOut, code = f.run(t, "why", "database", "nosuch", "-n", ns, "--cluster", ns+"/w1"); code != exitFailed || !strings.Contains(errOut, "there is no Database "+ns+"/nosuch") {
		t.Errorf("an unknown object is an error, got %d %s", code, errOut)
	}
}

func TestWhyFindsTheCluster(t *testing.T) {
	f, ns := start(t)
	apply(t, f.hub, strings.ReplaceAll(arrangedClass, "NS", ns))
	f.enroll(t, ns, "w1")
	apply(t, f.workload, `{apiVersion: v1, kind: ConfigMap, metadata: {name: here, namespace: `+ns+`}}`)
	out, errOut, code := f.run(t, "why", "configmap", "here", "-n", ns, "--cluster", ns+"/w1")
	if code != 0 || !strings.Contains(out, "nothing wrong was found") {
		t.Errorf("what is well is said to be, got %d %s\n%s", code, errOut, out)
	}
	out, errOut, code = f.run(t, "why", "database", "sql", "-n", ns)
	if code != exitFailed || !strings.Contains(errOut, "in a cluster that could be queried") {
		t.Errorf("an object that is in no cluster is an error, got %d %s\n%s", code, errOut, out)
	}
}

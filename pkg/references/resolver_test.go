// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
)

func things(tb testing.TB) *objects {
	tb.Helper()
	return &objects{of: map[string]map[string]any{
		"ConfigMap.v1/team-a/common-settings": content(tb, `
data: {region: eu-west-1, dotted.key: dots, empty: "", long: `+strings.Repeat("x", 1000)+`}
binaryData: {text: `+b64("hello")+`, image: `+b64("\xff\xfe")+`}`),
		"ConfigMap.v1/team-b/common-settings": content(tb, `{data: {region: of team-b}}`),
		"Secret.v1/team-a/accounts":           content(tb, `{data: {prod: `+b64("123456789012")+`, key: `+b64("\xff\xfe")+`}}`),
		"Secret.v1/team-b/accounts":           content(tb, `{data: {prod: `+b64("of team-b")+`}}`),
		"Thing.v1/team-a/vault":               content(tb, `{spec: {password: "123456789012", size: 3, users: [{key: "123456789012"}]}}`),
		"Thing.v2/team-a/vault":               content(tb, `{spec: {renamed: "123456789012"}}`),
		"Node.v1//node-1":                     content(tb, `{spec: {podCIDR: 10.0.0.0/24}}`),
		"Vpc.v1alpha1/team-a/main-vpc": content(tb, `
metadata: {annotations: {crossplane.io/external-name: vpc-1}}
spec: {forProvider: {cidrBlock: 10.0.0.0/16, size: 3, ratio: 0.5, enabled: true, tags: {b: "2", a: "1"}}}
status: {subnets: [{id: s-1}, {name: no id}, {id: s-2}], phase: Creating,
  conditions: [{type: Synced, status: "True"}, {type: Ready, status: "False"}], ports: [{port: 80, name: http}, {port: 80, name: again}]}`),
	}}
}

func TestResolve(t *testing.T) {
	const vpc = `group: ec2.aws.crossplane.io, version: v1alpha1, resource: vpcs, name: main-vpc`
	const settings = `resource: configmaps, name: common-settings`
	const vault = `group: example.org, version: v1, resource: things, name: vault`
	marked := NewSchema(&apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{"password": {Type: "string", Format: FormatSecret}}},
	}})
	users := NewSchema(&apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{"users": {
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"key": {Type: "string", Format: FormatSecret}},
			}},
		}}},
	}})
	cases := map[string]struct {
		reason     string
		object     string // The spec.
		references string
		cluster    bool
		tenancy    Tenancy
		schema     *Schema
		want       string // The spec without the references.
		wantReason string
		wantError  string
		wantReads  int
	}{
		"Seed": {
			reason:     "The field of another kind, of the seed's first example.",
			references: `[{` + vpc + `, fromFieldPath: spec.forProvider.cidrBlock, toFieldPath: spec.cidrBlock}]`,
			want:       `{"cidrBlock":"10.0.0.0/16"}`, wantReads: 1,
		},
		"PreferredVersion": {
			reason:     "Without a version it is the one that the API server prefers.",
			references: `[{group: ec2.aws.crossplane.io, resource: vpcs, name: main-vpc, fromFieldPath: spec.forProvider.cidrBlock, toFieldPath: spec.cidrBlock}]`,
			want:       `{"cidrBlock":"10.0.0.0/16"}`, wantReads: 1,
		},
		"Types": {
			reason: "Types are kept.",
			references: `[{` + vpc + `, fromFieldPath: spec.forProvider.size, toFieldPath: spec.size},
				{` + vpc + `, fromFieldPath: spec.forProvider.ratio, toFieldPath: spec.ratio},
				{` + vpc + `, fromFieldPath: spec.forProvider.enabled, toFieldPath: spec.enabled},
				{` + vpc + `, fromFieldPath: spec.forProvider.tags, toFieldPath: spec.tags}]`,
			want: `{"enabled":true,"ratio":0.5,"size":3,"tags":{"a":"1","b":"2"}}`, wantReads: 1,
		},
		"KeyWithDots": {
			reason: "A key with dots stands in brackets.",
			references: `[{` + vpc + `, fromFieldPath: "metadata.annotations[crossplane.io/external-name]", toFieldPath: spec.vpcID},
				{` + settings + `, fromFieldPath: "data[dotted.key]", toFieldPath: "spec.labels[example.org/dots]"}]`,
			want: `{"labels":{"example.org/dots":"dots"},"vpcID":"vpc-1"}`, wantReads: 2,
		},
		"WildcardFrom": {
			reason:     "A wildcard is the list of the values that are there.",
			references: `[{` + vpc + `, fromFieldPath: "status.subnets[*].id", toFieldPath: spec.ids}, {` + vpc + `, fromFieldPath: "spec.forProvider.tags[*]", toFieldPath: spec.tags}]`,
			want:       `{"ids":["s-1","s-2"],"tags":["1","2"]}`, wantReads: 1,
		},
		"Choice": {
			reason: "An element is chosen by a field of it.",
			references: `[{` + vpc + `, fromFieldPath: "status.conditions[type=Ready].status", toFieldPath: spec.ready},
				{` + vpc + `, fromFieldPath: "status.ports[name=http].port", toFieldPath: spec.port}]`,
			want: `{"port":80,"ready":"False"}`, wantReads: 1,
		},
		"ChoiceOfNothing": {
			reason:     "It may come.",
			references: `[{` + vpc + `, fromFieldPath: "status.conditions[type=Other].status", toFieldPath: spec.ready}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonFieldNotFound, wantReads: 1,
		},
		"ChoiceOfSeveral": {
			reason:     "It is not clear which one is meant.",
			references: `[{` + vpc + `, fromFieldPath: "status.ports[port=80].name", toFieldPath: spec.port}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonInvalidValue, wantReads: 1,
			wantError: `cannot resolve spec.references[0]: vpcs.ec2.aws.crossplane.io "main-vpc" in the namespace "team-a": ` +
				`status.ports[port=80].name: more than one element has port=80`,
		},
		"ChoiceTo": {
			reason: "So is the one that is filled.",
			object: `{pools: [{name: a}, {name: b, zones: [{}, {id: x}]}]}`,
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: "spec.pools[name=b].region"},
				{` + settings + `, fromFieldPath: data.region, toFieldPath: "spec.pools[name=b].zones[*].region"}]`,
			want:      `{"pools":[{"name":"a"},{"name":"b","region":"eu-west-1","zones":[{"region":"eu-west-1"},{"id":"x","region":"eu-west-1"}]}]}`,
			wantReads: 1,
		},
		"ChoiceToNothing": {
			reason: "No element is made.", object: `{pools: [{name: a}]}`,
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: "spec.pools[name=b].region"}]`,
			want:       `{"pools":[{"name":"a"}]}`, wantReason: commonv1alpha1.ReasonTargetRejected,
		},
		"KeyWithEqualSign": {
			reason:     "In an object it is a field.",
			object:     `{labels: {"a=b": {}}}`,
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: "spec.labels[a=b].region"}]`,
			want:       `{"labels":{"a=b":{"region":"eu-west-1"}}}`, wantReads: 1,
		},
		"Dependency": {
			reason:     "It is there.",
			references: `[{` + vpc + `}, {` + settings + `, fromFieldPath: data.region, toFieldPath: spec.region}]`,
			want:       `{"region":"eu-west-1"}`, wantReads: 2,
		},
		"DependencyMissing": {
			reason: "What comes after it waits.",
			references: `[{resource: configmaps, name: other},
				{` + settings + `, fromFieldPath: data.region, toFieldPath: spec.region}]`,
			want: `{}`, wantReason: commonv1alpha1.ReasonSourceNotFound, wantReads: 1,
			wantError: `cannot resolve spec.references[0]: configmaps "other" in the namespace "team-a": it does not exist`,
		},
		"DependencyOnField": {
			reason:     "It needs a value, of any kind.",
			references: `[{` + vpc + `, fromFieldPath: status.phase}, {` + vpc + `, fromFieldPath: status.other}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonFieldNotFound, wantReads: 1,
		},
		"DependencyAlways": {
			reason:     "It is examined at each change.",
			references: `[{` + vpc + `, policy: {resolve: Always}}]`,
			want:       `{}`, wantReads: 1,
		},
		"WhenReady": {
			reason: "The source is ready.",
			references: `[{` + vpc + `, fromFieldPath: "status.conditions[type=Synced].status", when: self == 'True'},
				{` + settings + `, fromFieldPath: data.region, toFieldPath: spec.region}]`,
			want: `{"region":"eu-west-1"}`, wantReads: 2,
		},
		"WhenNotReady": {
			reason: "The source is not ready.",
			references: `[{` + vpc + `, fromFieldPath: "status.conditions[type=Ready].status", when: self == 'True'},
				{` + settings + `, fromFieldPath: data.region, toFieldPath: spec.region}]`,
			want: `{}`, wantReason: commonv1alpha1.ReasonNotReady, wantReads: 1,
			wantError: `cannot resolve spec.references[0]: vpcs.ec2.aws.crossplane.io "main-vpc" in the namespace "team-a": ` +
				`status.conditions[type=Ready].status: when is not true yet`,
		},
		"WhenOptional": {
			reason: "It is left out until then.",
			references: `[{` + vpc + `, fromFieldPath: status.phase, when: self == 'Ready', toFieldPath: spec.phase, policy: {resolution: Optional}},
				{` + settings + `, fromFieldPath: data.region, toFieldPath: spec.region}]`,
			want: `{"region":"eu-west-1"}`, wantReads: 2,
		},
		"WhenOfTheWhole": {
			reason:     "Without a field it is about the object.",
			references: `[{` + vpc + `, when: "self.status.phase == 'Creating' && self.metadata.name == 'main-vpc' && !has(self.metadata.managedFields)"}]`,
			want:       `{}`, wantReads: 1,
		},
		"WhenOfNothing": {
			reason:     "A field that is not there may come.",
			references: `[{` + vpc + `, when: self.status.other == 'x'}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonNotReady, wantReads: 1,
			wantError: `cannot resolve spec.references[0]: vpcs.ec2.aws.crossplane.io "main-vpc" in the namespace "team-a": ` +
				`when is not true yet`,
		},
		"WhenOfTheValue": {
			reason:     "It is examined before it is taken.",
			references: `[{` + vpc + `, fromFieldPath: spec.forProvider.size, when: self > 2, toFieldPath: spec.size}]`,
			want:       `{"size":3}`, wantReads: 1,
		},
		"WhenExists": {
			reason:     "One of a list is as it must be.",
			references: `[{` + vpc + `, when: "self.status.conditions.exists(c, c.type == 'Synced' && c.status == 'True')"}]`,
			want:       `{}`, wantReads: 1,
		},
		"WhenWithLoops": {
			reason:     "It has what expressions have.",
			references: `[{` + vpc + `, when: "self.status.subnets.exists(a, self.status.subnets.exists(b, a == b))"}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonInvalidReference, wantReads: 1,
		},
		"WholeDouble": {
			reason: "It is no change to a number that is the same in JSON.", object: `{size: 3}`,
			references: `[{variables: [{name: size, fromRef: {` + vpc + `, fieldPath: spec.forProvider.size}}],
				expression: "double(variables.size)", toFieldPath: spec.size, policy: {resolve: Always}}]`,
			want: `{"size":3}`, wantReads: 1,
		},
		"MapAndFilter": {
			reason: "A list of what some elements have.",
			references: `[{variables: [{name: subnets, fromRef: {` + vpc + `, fieldPath: status.subnets}}],
				expression: "variables.subnets.filter(s, has(s.id)).map(s, s.id)", toFieldPath: spec.ids}]`,
			want: `{"ids":["s-1","s-2"]}`, wantReads: 1,
		},
		"WhenOfTooMuch": {
			reason:     "The source is of another author, so its size is bounded by the uses.",
			references: `[{` + settings + `, fromFieldPath: data.long, when: "` + strings.Repeat("self != '' && ", 40) + `true"}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonInvalidValue, wantReads: 1,
		},
		"WhenOfAnotherType": {
			reason:     "That is a mistake.",
			references: `[{` + vpc + `, fromFieldPath: status.phase, when: self > 2}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonInvalidValue, wantReads: 1,
			wantError: `cannot resolve spec.references[0]: vpcs.ec2.aws.crossplane.io "main-vpc" in the namespace "team-a": when: no such overload`,
		},
		"WhenWithVariables": {
			reason: "They can be examined by the expression.",
			references: `[{variables: [{name: a, fromRef: {` + settings + `, fieldPath: data.region}}], expression: variables.a,
				when: "true", toFieldPath: spec.region}]`,
			want: `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"ExistenceOfSecret": {
			reason:     "The names of Secrets are not guessed.",
			references: `[{resource: secrets, name: accounts}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"GuessSecretByWhen": {
			reason:     "One bit after the other.",
			references: `[{resource: secrets, name: accounts, fromFieldPath: data.prod, when: self.startsWith('1')}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"GuessMarkedByWhen": {
			reason: "The whole object has the field in it.", schema: marked,
			references: `[{` + vault + `, when: self.spec.password.startsWith('1')}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ExistenceOfMarked": {
			reason: "That it exists is no value of a field.", schema: marked,
			references: `[{` + vault + `}]`,
			want:       `{}`, wantReads: 1,
		},
		"OwnName": {
			reason: "The name is in a field of the object, or one that was just filled.", object: `{network: main-vpc}`,
			references: `[{group: ec2.aws.crossplane.io, resource: vpcs, nameFieldPath: spec.network, fromFieldPath: status.phase, toFieldPath: spec.phase},
				{variables: [{name: phase, fromRef: {group: ec2.aws.crossplane.io, resource: vpcs, nameFieldPath: spec.network, fieldPath: status.phase}}],
				expression: "variables.phase == 'Creating' ? 'common-settings' : ''", toFieldPath: spec.settings},
				{resource: configmaps, nameFieldPath: spec.settings, fromFieldPath: data.region, toFieldPath: spec.region}]`,
			want: `{"network":"main-vpc","phase":"Creating","region":"eu-west-1","settings":"common-settings"}`, wantReads: 2,
		},
		"OwnNameOfTheObject": {
			reason:     "Objects are often named alike.",
			references: `[{resource: configmaps, nameFieldPath: metadata.name}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSourceNotFound, wantReads: 1,
			wantError: `cannot resolve spec.references[0]: configmaps "thing" in the namespace "team-a": it does not exist`,
		},
		"OwnNameIsPath": {
			reason: "A value is no path of a request.", object: `{network: ../../secrets/a}`,
			references: `[{` + `resource: configmaps, nameFieldPath: spec.network}]`,
			want:       `{"network":"../../secrets/a"}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"OwnNameIsList": {
			reason: "It has many names.", object: `{networks: [a, b]}`,
			references: `[{resource: configmaps, nameFieldPath: "spec.networks[*]"}]`,
			want:       `{"networks":["a","b"]}`, wantReason: commonv1alpha1.ReasonInvalidValue,
		},
		"OwnNameElsewhere": {
			reason:     "Nothing else is kept of an object.",
			references: `[{resource: configmaps, nameFieldPath: status.name}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"TwoNames": {
			reason:     "It is not clear which is meant.",
			references: `[{resource: configmaps, name: a, nameFieldPath: metadata.name}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"ShowSecretAsName": {
			reason: "The condition shows the names of what is not there.", schema: marked, object: `{password: "123456789012"}`,
			references: `[{resource: configmaps, nameFieldPath: spec.password}]`,
			want:       `{"password":"123456789012"}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ShowAllowedSecretAsName": {
			reason: "So it does those of a field that the operator allowed.", object: `{users: [{key: "123456789012"}]}`,
			tenancy:    Tenancy{SecretFields: []SecretField{{GroupKind: schema.GroupKind{Group: "example.org", Kind: "Thing"}, FieldPath: "spec.users[*].key"}}},
			references: `[{resource: configmaps, nameFieldPath: "spec.users[0].key"}]`,
			want:       `{"users":[{"key":"123456789012"}]}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ReachSecretByName": {
			reason: "A Secret is one however it is named.", object: `{network: accounts}`,
			references: `[{resource: secrets, nameFieldPath: spec.network, fromFieldPath: data.prod, toFieldPath: spec.region}]`,
			want:       `{"network":"accounts"}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"GuessSecretByChoice": {
			reason:     "Whether there is an element with the value of a marked field is as secret as that.",
			tenancy:    Tenancy{SecretFields: []SecretField{{GroupKind: schema.GroupKind{Group: "example.org", Kind: "Thing"}, FieldPath: "spec.users[*].key"}}},
			references: `[{` + vault + `, fromFieldPath: "spec.users[key=123].name", toFieldPath: spec.description}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ReadSecretByChoice": {
			reason:     "A marked field is one however it is named.",
			tenancy:    Tenancy{SecretFields: []SecretField{{GroupKind: schema.GroupKind{Group: "example.org", Kind: "Thing"}, FieldPath: "spec.users[0].key"}}},
			references: `[{` + vault + `, fromFieldPath: "spec.users[name=a].key", toFieldPath: spec.description}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ReadMarkedByChoice": {
			reason: "So is one that the author marked.", schema: users,
			references: `[{` + vault + `, fromFieldPath: "spec.users[name=a].key", toFieldPath: spec.description}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ElementNotThereYet": {
			reason:     "It may come, like a field.",
			references: `[{` + vault + `, when: "self.spec.users[9].name == 'a'"}]`, want: `{}`, wantReads: 1, wantReason: commonv1alpha1.ReasonNotReady,
		},
		"GuessOwnByChoice": {
			reason: "The condition would show whether there is an element with that value.", schema: users, object: `{users: [{key: "123"}]}`,
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: "spec.users[key=123].name"}]`,
			want:       `{"users":[{"key":"123"}]}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"GuessByWhenIntoMarked": {
			reason: "The value may be written there, and the condition would show one bit of it after the other.", schema: users, object: `{users: [{name: a}]}`,
			references: `[{resource: secrets, name: accounts, fromFieldPath: data.prod, when: self.startsWith('1'), toFieldPath: "spec.users[0].key"}]`,
			want:       `{"users":[{"name":"a"}]}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"GuessMarkedByChoice": {
			reason: "Its value is not compared.", schema: users,
			references: `[{` + vault + `, fromFieldPath: "spec.users[key=123].name", toFieldPath: spec.description}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"WildcardTo": {
			reason:     "A wildcard in the target fills what has no value in each element.",
			object:     `{pools: [{name: a}, {name: b, region: mine}]}`,
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: "spec.pools[*].region"}]`,
			want:       `{"pools":[{"name":"a","region":"eu-west-1"},{"name":"b","region":"mine"}]}`, wantReads: 1,
		},
		"WildcardToNothing": {
			reason:     "A wildcard that leads nowhere is a failure, as the field is not filled.",
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: "spec.pools[*].region"}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonTargetRejected, wantError: "cannot resolve spec.references[0]: spec.pools[*].region: the path matches nothing",
		},
		"HasValue": {
			reason: "A field that has a value is left alone, and nothing is read.",
			object: `{region: mine}`, references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: spec.region}]`,
			want: `{"region":"mine"}`,
		},
		"Always": {
			reason: "The field follows its source.",
			object: `{region: mine}`, references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: spec.region, policy: {resolve: Always}}]`,
			want: `{"region":"eu-west-1"}`, wantReads: 1,
		},
		"AlwaysUnchanged": {
			reason: "Nothing is filled in that is there.",
			object: `{region: eu-west-1}`, references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: spec.region, policy: {resolve: Always}}]`,
			want: `{"region":"eu-west-1"}`, wantReads: 1,
		},
		"Optional": {
			reason: "What is missing is left out, and those that come later are resolved.",
			references: `[{resource: configmaps, name: missing, fromFieldPath: data.region, toFieldPath: spec.a, policy: {resolution: Optional}},
				{` + settings + `, fromFieldPath: data.region, toFieldPath: spec.b}]`,
			want: `{"b":"eu-west-1"}`, wantReads: 2,
		},
		"OrderAndFirstFailure": {
			reason: "The first failure ends it; what came before is filled in.",
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: spec.a},
				{resource: configmaps, name: missing, fromFieldPath: data.region, toFieldPath: spec.b},
				{` + settings + `, fromFieldPath: data.region, toFieldPath: spec.c}]`,
			want: `{"a":"eu-west-1"}`, wantReads: 2, wantReason: commonv1alpha1.ReasonSourceNotFound,
			wantError: `cannot resolve spec.references[1]: configmaps "missing" in the namespace "team-a": it does not exist`,
		},
		"FieldNotFound": {
			reason:     "The error names the path.",
			references: `[{` + settings + `, fromFieldPath: data.zone, toFieldPath: spec.a}]`,
			want:       `{}`, wantReads: 1, wantReason: commonv1alpha1.ReasonFieldNotFound,
			wantError: `cannot resolve spec.references[0]: configmaps "common-settings" in the namespace "team-a": data.zone: there is no value`,
		},
		"EmptyText": {
			reason:     "An empty text is no value yet.",
			references: `[{` + settings + `, fromFieldPath: data.empty, toFieldPath: spec.a}]`,
			want:       `{}`, wantReads: 1, wantReason: commonv1alpha1.ReasonFieldNotFound,
		},
		"Combined": {
			reason: "The seed's ARN: its fmt and its template as CEL.",
			references: `[{variables: [{name: region, fromRef: {resource: configmaps, name: common-settings, fieldPath: data.region}},
					{name: cidr, fromRef: {group: ec2.aws.crossplane.io, resource: vpcs, name: main-vpc, fieldPath: spec.forProvider.cidrBlock}}],
				expression: "'arn:aws:clouddirectory:%s:%s:schema/published/cognito/1.0'.format([variables.region, variables.cidr])", toFieldPath: spec.arn},
				{variables: [{name: size, fromRef: {group: ec2.aws.crossplane.io, resource: vpcs, name: main-vpc, fieldPath: spec.forProvider.size}}],
				expression: "{'double': dyn(variables.size * 2), 'list': dyn([dyn(1.5), dyn(true), dyn('x')])}", toFieldPath: spec.computed}]`,
			want:      `{"arn":"arn:aws:clouddirectory:eu-west-1:10.0.0.0/16:schema/published/cognito/1.0","computed":{"double":6,"list":[1.5,true,"x"]}}`,
			wantReads: 2,
		},
		"ExpressionCosts": {
			reason: "What an expression costs is bounded.",
			references: `[{variables: [{name: a, fromRef: {` + settings + `, fieldPath: data.long}}],
				expression: "''` + strings.Repeat(" + variables.a", 30) + `", toFieldPath: spec.a}]`,
			want: `{}`, wantReads: 1, wantReason: commonv1alpha1.ReasonInvalidValue, wantError: "cannot resolve spec.references[0]: expression: it exceeds the cost limit for this object",
		},
		"ExhaustMemoryByExpression": {
			reason: "An expression that multiplies texts is not evaluated.",
			references: `[{variables: [{name: a, fromRef: {` + settings + `, fieldPath: data.region}}],
				expression: "variables.a.replace('', variables.a).replace('', variables.a)", toFieldPath: spec.a}]`,
			want: `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
			wantError: "cannot resolve spec.references[0]: expression: the function replace is not available in references",
		},
		"ExhaustMemoryByVariables": {
			reason: "Nor is one that puts a long text together often.",
			references: `[{variables: [{name: a, fromRef: {` + settings + `, fieldPath: data.long}}],
				expression: "[` + strings.Repeat("variables.a,", 40) + `].join()", toFieldPath: spec.a}]`,
			want: `{}`, wantReads: 1, wantReason: commonv1alpha1.ReasonInvalidValue,
			wantError: "cannot resolve spec.references[0]: expression: the variables together have more than 32768 bytes, each counted as often as the expression uses variables",
		},
		"TooManyVariables": {
			reason: "The schema has the limit too, but the owner of the cluster can change the schema.",
			references: `[{variables: [` + strings.Repeat(`{name: a, fromRef: {`+settings+`, fieldPath: data.region}},`, 17) + `],
				expression: variables.a, toFieldPath: spec.a}]`,
			want: `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
			wantError: "cannot resolve spec.references[0]: a reference can have at most 16 variables",
		},
		"ReadSecretBitByBit": {
			reason: "Nor is it said whether an expression makes a value of it: that is one bit of it.", schema: marked,
			references: `[{variables: [{name: a, fromRef: {resource: secrets, name: accounts, fieldPath: data.prod}}],
				expression: "variables.a.startsWith('2') ? 'x' : ''", toFieldPath: spec.description}]`,
			want: `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ReadNamesOfSecrets": {
			reason: "Nor whether it is there.", schema: marked,
			references: `[{resource: secrets, name: missing, fromFieldPath: data.prod, toFieldPath: spec.description}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ReadSecretIntoMarkedAndOther": {
			reason: "Every target is marked, or nothing is read.", schema: marked, object: `{l: [{}]}`,
			references: `[{variables: [{name: b, fromRef: {` + settings + `, fieldPath: data.region}}, {name: a, fromRef: {resource: secrets, name: accounts, fieldPath: data.prod}}],
				expression: variables.b, toFieldPath: "spec.l[*].a"}]`,
			want: `{"l":[{}]}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ExpressionDoesNotCompile": {
			reason: "It cannot be computed, even if the sources exist.",
			references: `[{variables: [{name: a, fromRef: {` + settings + `, fieldPath: data.region}}],
				expression: "variables.a +", toFieldPath: spec.a}]`,
			want: `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"BinaryData": {
			reason:     "What a ConfigMap has in binaryData is decoded.",
			references: `[{` + settings + `, fromFieldPath: binaryData.text, toFieldPath: spec.a}]`,
			want:       `{"a":"hello"}`, wantReads: 1,
		},
		"NotText": {
			reason:     "What is not text is refused.",
			references: `[{` + settings + `, fromFieldPath: binaryData.image, toFieldPath: spec.a}]`,
			want:       `{}`, wantReads: 1, wantReason: commonv1alpha1.ReasonInvalidValue,
		},
		"SecretIntoMarkedField": {
			reason: "The author marked the field.", schema: marked,
			references: `[{resource: secrets, name: accounts, fromFieldPath: data.prod, toFieldPath: spec.password}]`,
			want:       `{"password":"123456789012"}`, wantReads: 1,
		},
		"SecretIntoAllowedField": {
			reason:     "The operator allowed the field.",
			tenancy:    Tenancy{SecretFields: []SecretField{{GroupKind: schema.GroupKind{Group: "example.org", Kind: "Thing"}, FieldPath: "spec.users[*].password"}}},
			object:     `{users: [{name: a}]}`,
			references: `[{resource: secrets, name: accounts, fromFieldPath: data.prod, toFieldPath: "spec.users[0].password"}]`,
			want:       `{"users":[{"name":"a","password":"123456789012"}]}`, wantReads: 1,
		},
		"ReadSecretThroughReadableField": {
			reason:     "What a Secret holds goes into no other field.",
			schema:     marked,
			references: `[{resource: secrets, name: accounts, fromFieldPath: data.prod, toFieldPath: spec.description}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ReadSecretThroughAnotherObject": {
			reason: "A field that is marked holds what a Secret held: it goes into fields only that are marked, too.", schema: marked,
			references: `[{` + vault + `, fromFieldPath: spec.password, toFieldPath: spec.description}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
			wantError: "cannot resolve spec.references[0]: spec.description: the referenced field is marked for values of Secrets " +
				"(format: password): its value may be written only to fields that are, too",
		},
		"ReadSecretWithWhatIsAround": {
			reason: "The whole spec has the field in it.", schema: marked,
			references: `[{` + vault + `, fromFieldPath: spec, toFieldPath: spec.description}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ReadSecretByWildcard": {
			reason: "So do all fields of the spec.", schema: marked,
			references: `[{` + vault + `, fromFieldPath: "spec[*]", toFieldPath: spec.description}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ReadSecretThroughExpressionOverAnotherObject": {
			reason: "Nor when it is computed.", schema: marked,
			references: `[{variables: [{name: a, fromRef: {` + vault + `, fieldPath: spec.password}}], expression: "variables.a.substring(1)", toFieldPath: spec.description}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ReadSecretInAnotherVersion": {
			reason: "It is not known what is marked in another version.", schema: marked,
			references: `[{group: example.org, version: v2, resource: things, name: vault, fromFieldPath: spec.renamed, toFieldPath: spec.description}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ReadSecretThroughAllowedField": {
			reason: "A field that the operator allowed holds what a Secret held as well.", schema: marked,
			tenancy:    Tenancy{SecretFields: []SecretField{{GroupKind: schema.GroupKind{Group: "example.org", Kind: "Thing"}, FieldPath: "spec.users[*].key"}}},
			references: `[{` + vault + `, fromFieldPath: "spec.users[0].key", toFieldPath: spec.description}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"MarkedIntoMarked": {
			reason: "From one field that is marked into another.", schema: marked,
			references: `[{` + vault + `, fromFieldPath: spec.password, toFieldPath: spec.password}]`,
			want:       `{"password":"123456789012"}`, wantReads: 1,
		},
		"MarkedThroughErrorOfExpression": {
			reason: "What a marked field holds is not repeated either.", schema: marked,
			references: `[{variables: [{name: a, fromRef: {` + vault + `, fieldPath: spec.password}}], expression: "duration(variables.a)", toFieldPath: spec.password}]`,
			want:       `{}`, wantReads: 1, wantReason: commonv1alpha1.ReasonInvalidValue,
			wantError: "cannot resolve spec.references[0]: expression: it fails; the cause is omitted, because a Secret is involved",
		},
		"BesideMarked": {
			reason: "Other fields of such an object are as any.", schema: marked,
			references: `[{` + vault + `, fromFieldPath: spec.size, toFieldPath: spec.size}]`,
			want:       `{"size":3}`, wantReads: 1,
		},
		"ReadSecretOfAnyNamespaceThroughAnotherObject": {
			reason: "A cluster-scoped object reads Secrets of namespaces no more that way.", schema: marked, cluster: true,
			references: `[{` + vault + `, namespace: team-a, fromFieldPath: spec.password, toFieldPath: spec.password}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonNotPermitted,
		},
		"ClusterScopedObjectAllowedSecrets": {
			reason: "Unless the operator allowed all Secrets of the namespace.", schema: marked, cluster: true,
			tenancy:    Tenancy{Secrets: []types.NamespacedName{{Namespace: "team-a", Name: "*"}}},
			references: `[{` + vault + `, namespace: team-a, fromFieldPath: spec.password, toFieldPath: spec.password}]`,
			want:       `{"password":"123456789012"}`, wantReads: 1,
		},
		"ReadSecretThroughExpression": {
			reason: "Nor when it was computed from one.", schema: marked,
			references: `[{variables: [{name: a, fromRef: {resource: secrets, name: accounts, fieldPath: data.prod}}], expression: "variables.a.substring(1)", toFieldPath: spec.description}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"ReadSecretThroughErrorOfExpression": {
			reason: "A function that fails repeats what it was called with.", schema: marked,
			references: `[{variables: [{name: a, fromRef: {resource: secrets, name: accounts, fieldPath: data.prod}}], expression: "duration(variables.a)", toFieldPath: spec.password}]`,
			want:       `{}`, wantReads: 1, wantReason: commonv1alpha1.ReasonInvalidValue,
			wantError: "cannot resolve spec.references[0]: expression: it fails; the cause is omitted, because a Secret is involved",
		},
		"ReadOtherNamespace": {
			reason:     "Another namespace is not even read.",
			references: `[{` + settings + `, namespace: team-b, fromFieldPath: data.region, toFieldPath: spec.a}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonNotPermitted,
			wantError: `cannot resolve spec.references[0]: configmaps "common-settings" in the namespace "team-b": no ReferenceGrant in the namespace "team-b" permits it`,
		},
		"Granted": {
			reason:     "The owner of the other namespace grants it.",
			tenancy:    Tenancy{Grants: permitted{Namespace: "team-b", Name: "common-settings"}},
			references: `[{` + settings + `, namespace: team-b, fromFieldPath: data.region, toFieldPath: spec.a}]`,
			want:       `{"a":"of team-b"}`, wantReads: 1,
		},
		"ReadNodesFromNamespace": {
			reason:     "Cluster-scoped resources are on a list.",
			references: `[{resource: nodes, name: node-1, fromFieldPath: spec.podCIDR, toFieldPath: spec.a}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonNotPermitted,
		},
		"ClusterScopedAllowed": {
			reason: "It is on the list.", tenancy: Tenancy{ClusterScoped: []schema.GroupResource{{Resource: "nodes"}}},
			references: `[{resource: nodes, name: node-1, fromFieldPath: spec.podCIDR, toFieldPath: spec.a}]`,
			want:       `{"a":"10.0.0.0/24"}`, wantReads: 1,
		},
		"ClusterScopedObject": {
			reason: "It may reference any namespace.", cluster: true,
			references: `[{` + settings + `, namespace: team-b, fromFieldPath: data.region, toFieldPath: spec.a}]`,
			want:       `{"a":"of team-b"}`, wantReads: 1,
		},
		"ReadAnySecretFromClusterScopedObject": {
			reason: "But not Secrets.", cluster: true, schema: marked,
			references: `[{resource: secrets, name: accounts, namespace: team-b, fromFieldPath: data.prod, toFieldPath: spec.password}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonNotPermitted,
		},
		"ClusterScopedObjectAllowedSecret": {
			reason: "Unless the operator allowed it.", cluster: true, schema: marked,
			tenancy:    Tenancy{Secrets: []types.NamespacedName{{Namespace: "team-b", Name: "*"}}},
			references: `[{resource: secrets, name: accounts, namespace: team-b, fromFieldPath: data.prod, toFieldPath: spec.password}]`,
			want:       `{"password":"of team-b"}`, wantReads: 1,
		},
		"NamespaceRequired": {
			reason: "A cluster-scoped object has no namespace that could be meant.", cluster: true,
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: spec.a}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"WriteFinalizers": {
			reason:     "Only the spec is filled.",
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: "metadata.finalizers[0]"}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"WriteOtherReferences": {
			reason:     "Else a value could decide what is referenced.",
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: "spec['references'][0].name"}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"WriteOtherReferencesByWildcard": {
			reason:     "Else a value could decide what is referenced.",
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: "spec[*][0].name"}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"ExhaustMemoryByIndex": {
			reason:     "A list grows by one element.",
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: "spec.a[1000][1000][1000]"}]`,
			want:       `{}`, wantReads: 1, wantReason: commonv1alpha1.ReasonTargetRejected,
		},
		"IndexTooLarge": {
			reason:     "It is refused before anything is read.",
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: "spec.a[4294967295]"}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"ReachAnotherPathOfTheAPI": {
			reason:     "A name is one element of a path.",
			references: `[{resource: configmaps, name: ../secrets/accounts, fromFieldPath: data.region, toFieldPath: spec.a}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"PassForACoreKind": {
			reason:     "Without a group it is the core group, and no other that has such a resource.",
			references: `[{resource: deployments, name: a, fromFieldPath: data.region, toFieldPath: spec.a}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonKindNotServed,
		},
		"PrefixOfGroup": {
			reason:     "A group is that group, and none that begins with it.",
			references: `[{group: evil, resource: deployments, name: a, fromFieldPath: data.region, toFieldPath: spec.a}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonKindNotServed,
		},
		"SameInAnotherWriting": {
			reason: "With its version or without, it is the same object, and read once.",
			references: `[{` + settings + `, fromFieldPath: data.region, toFieldPath: spec.a},
				{` + settings + `, version: v1, namespace: team-a, fromFieldPath: data.region, toFieldPath: spec.b}]`,
			want: `{"a":"eu-west-1","b":"eu-west-1"}`, wantReads: 1,
		},
		"FollowItselfInAnotherVersion": {
			reason:     "In another version it is the same object.",
			references: `[{group: example.org, version: v2, resource: things, name: thing, fromFieldPath: spec.a, toFieldPath: spec.b}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
			wantError: `cannot resolve spec.references[0]: things.example.org "thing" in the namespace "team-a": an object cannot reference itself`,
		},
		"NotServed": {
			reason:     "The version is not served.",
			references: `[{group: ec2.aws.crossplane.io, version: v9, resource: vpcs, name: main-vpc, fromFieldPath: data.region, toFieldPath: spec.a}]`,
			want:       `{}`, wantReason: commonv1alpha1.ReasonKindNotServed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := tc.object
			if spec == "" {
				spec = "{}"
			}
			namespace := "namespace: team-a"
			if tc.cluster {
				namespace = ""
			}
			obj := object(t, "apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: thing\n  "+namespace+"\nspec: "+spec+"\n")
			refs := object(t, "apiVersion: v1\nkind: X\nspec: {references: "+tc.references+"}").Object["spec"].(map[string]any)["references"]
			obj.Object["spec"].(map[string]any)["references"] = refs
			server := things(t)
			before := obj.DeepCopy()

			result, err := NewResolver().Resolve(context.Background(), Request{
				Object: obj, References: getReferences(t, obj), Reader: server, Mapper: mapper(), Tenancy: tc.tenancy, Schema: tc.schema,
			})

			got := result.Object.DeepCopy().Object["spec"].(map[string]any)
			delete(got, "references")
			if asText(t, got) != tc.want {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, asText(t, got))
			}
			if asText(t, obj.Object) != asText(t, before.Object) {
				t.Errorf("%s: the object was changed", tc.reason)
			}
			if changed := asText(t, result.Object.Object) != asText(t, before.Object); changed != (len(result.Filled) > 0) {
				t.Errorf("%s: the object differs: %v, but was filled: %v", tc.reason, changed, result.Filled)
			}
			var failed *Error
			if errors.As(err, &failed); tc.wantReason != "" && (failed == nil || failed.Reason != tc.wantReason) || tc.wantReason == "" && err != nil {
				t.Errorf("%s: want the reason %q, got %v (%+v)", tc.reason, tc.wantReason, err, failed)
			}
			if tc.wantError != "" && (err == nil || err.Error() != tc.wantError) {
				t.Errorf("%s:\nwant %s\ngot  %v", tc.reason, tc.wantError, err)
			}
			if err != nil && (strings.Contains(err.Error(), "123456789012") || strings.Contains(err.Error(), "of team-b")) {
				t.Errorf("%s: the error repeats what a Secret holds: %v", tc.reason, err)
			}
			reads := 0
			for id, n := range server.reads {
				if reads += n; n > 1 {
					t.Errorf("%s: %s was read %d times", tc.reason, id, n)
				}
			}
			if reads != tc.wantReads || len(result.Sources) > reads {
				t.Errorf("%s: want %d reads, got %d, and more depends on %v", tc.reason, tc.wantReads, reads, result.Sources)
			}
			if again := strings.Contains(tc.references, "Always") || strings.Contains(tc.references, "Optional") || tc.wantReason == commonv1alpha1.ReasonSourceNotFound ||
				tc.wantReason == commonv1alpha1.ReasonFieldNotFound || tc.wantReason == commonv1alpha1.ReasonNotReady; (again || err == nil) && again != (len(result.Sources) > 0) {
				t.Errorf("%s: more depends on %v", tc.reason, result.Sources)
			}
		})
	}
}

// TestKeyOfAListDoesNotFollow: another value of a field by which elements are distinguished would be another element.
func TestKeyOfAListDoesNotFollow(t *testing.T) {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	schema := NewSchema(&apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{"pools": {
			Type: "array", XListType: new("map"), XListMapKeys: []string{"name"},
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": text, "region": text},
			}},
		}}},
	}})
	for name, tc := range map[string]struct {
		reason, target, policy string
		want                   string
	}{
		"Key":   {reason: "Elements are distinguished by it.", target: "spec.pools[0].name", policy: "{resolve: Always}", want: commonv1alpha1.ReasonTargetRejected},
		"Once":  {reason: "It has a value, and is left alone.", target: "spec.pools[0].name", policy: "{resolve: Once}"},
		"Other": {reason: "It is an ordinary field of an element.", target: "spec.pools[0].region", policy: "{resolve: Always}"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := object(t, "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: thing, namespace: team-a}\nspec: {pools: [{name: a}], references: ["+
				"{resource: configmaps, name: common-settings, fromFieldPath: data.region, toFieldPath: '"+tc.target+"', policy: "+tc.policy+"}]}")
			_, err := NewResolver().Resolve(t.Context(), Request{
				Object: obj, References: getReferences(t, obj), Reader: things(t), Mapper: mapper(), Schema: schema,
			})
			var failed *Error
			if errors.As(err, &failed); (err != nil) != (tc.want != "") || failed != nil && failed.Reason != tc.want {
				t.Errorf("%s want the reason %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestExhaustMemoryByLargeSources: the total size of what is read for one object is bounded.
func TestExhaustMemoryByLargeSources(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	cases := map[string]struct {
		reason   string
		sources  int
		variable int // How many variables each reference has.
		data     map[string]any
		want     string
	}{
		"Few":   {reason: "That is usual.", sources: 100, variable: 1, data: map[string]any{"a": "x"}},
		"Large": {reason: "They are kept until all references are resolved.", sources: 20, variable: 1, data: map[string]any{"a": "x", "b": large}, want: "more than 16 MiB"},
		"Small": {reason: "Fields take more than their text.", sources: 20, variable: 1, data: map[string]any{"a": "x", "b": make([]any, 20_000)}, want: "more than 16 MiB"},
		"Many":  {reason: "Each is a request.", sources: 300, variable: 3, data: map[string]any{"a": "x"}, want: "an object can reference at most 256 objects"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := &objects{of: map[string]map[string]any{}}
			var refs []commonv1alpha1.GenericReference
			for i := range tc.sources {
				source := fmt.Sprintf("source-%d", i)
				server.of["ConfigMap.v1/team-a/"+source] = map[string]any{"data": tc.data}
				if i%tc.variable == 0 {
					refs = append(refs, commonv1alpha1.GenericReference{Expression: "variables.a0", ToFieldPath: fmt.Sprintf("spec.field%d", i)})
				}
				last := &refs[len(refs)-1]
				last.Variables = append(last.Variables, commonv1alpha1.ReferenceVariable{
					Name: fmt.Sprintf("a%d", i%tc.variable), FromRef: commonv1alpha1.ReferenceSource{Resource: "configmaps", Name: source, FieldPath: "data.a"},
				})
			}
			obj := object(t, "{apiVersion: example.org/v1, kind: Thing, metadata: {name: thing, namespace: team-a}, spec: {}}")
			_, err := NewResolver().Resolve(context.Background(), Request{Object: obj, References: refs, Reader: server, Mapper: mapper()})
			var failed *Error
			switch errors.As(err, &failed); {
			case tc.want == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (failed == nil || failed.Reason != commonv1alpha1.ReasonInvalidValue || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
			if len(server.reads) > 256 {
				t.Errorf("%s: %d objects were read", tc.reason, len(server.reads))
			}
		})
	}
}

func TestPending(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		status string
		want   string
	}{
		"Follows":       {reason: "The status has no condition yet.", spec: `{x: 1, references: [{resource: a, name: b, fromFieldPath: c, toFieldPath: spec.x, policy: {resolve: Always}}]}`, want: `[0]`},
		"FollowsNow":    {reason: "It has the value of its source.", spec: `{x: 1, references: [{resource: a, name: b, fromFieldPath: c, toFieldPath: spec.x, policy: {resolve: Always}}]}`, status: `{conditions: [{type: ReferencesResolved, status: "True", observedGeneration: 7}]}`, want: `null`},
		"FollowsBefore": {reason: "The object was changed since.", spec: `{x: 1, references: [{resource: a, name: b, fromFieldPath: c, toFieldPath: spec.x, policy: {resolve: Always}}]}`, status: `{conditions: [{type: ReferencesResolved, status: "True", observedGeneration: 6}]}`, want: `[0]`},
		"FollowsFailed": {reason: "Its source is gone.", spec: `{x: 1, references: [{resource: a, name: b, fromFieldPath: c, toFieldPath: spec.x, policy: {resolve: Always}}]}`, status: `{conditions: [{type: ReferencesResolved, status: "False", observedGeneration: 7}]}`, want: `[0]`},
		"Depends":       {reason: "Whether it is there is not in the object.", spec: `{references: [{resource: a, name: b}]}`, want: `[0]`},
		"DependsNow":    {reason: "It was there.", spec: `{references: [{resource: a, name: b}]}`, status: `{conditions: [{type: ReferencesResolved, status: "True", observedGeneration: 7}]}`, want: `null`},
		"DependsUnread": {reason: "It is meant as one, and cannot be resolved.", spec: `{references: [{resource: a, name: b, when: c, later: 1}]}`, want: `[0]`},
		"None":          {reason: "There are no references.", spec: `{}`, want: `null`},
		"NotOurs":       {reason: "Another kind has a field of that name, too.", spec: `{references: [{dependsOn: {name: a}}]}`, want: `null`},
		"Scalar":        {reason: "Another kind has a field of that name, too.", spec: `{references: 3}`, want: `null`},
		"Unknown":       {reason: "It is meant as one, and cannot be resolved.", spec: `{references: [{resource: a, name: b, fromFieldPath: c, toFieldPath: spec.x, later: 1}]}`, want: `[0]`},
		"Unfilled":      {reason: "The field has no value.", spec: `{references: [{resource: a, name: b, fromFieldPath: c, toFieldPath: spec.x}]}`, want: `[0]`},
		"Filled":        {reason: "The field has one.", spec: `{x: 1, references: [{resource: a, name: b, fromFieldPath: c, toFieldPath: spec.x}]}`, want: `null`},
		"Optional":      {reason: "It may stay without.", spec: `{references: [{resource: a, name: b, fromFieldPath: c, toFieldPath: spec.x, policy: {resolution: Optional}}]}`, want: `null`},
		"OneOfTwo":      {reason: "One element has none.", spec: `{l: [{x: 1}, {}], references: [{resource: a, name: b, fromFieldPath: c, toFieldPath: "spec.l[*].x"}]}`, want: `[0]`},
		"Malformed":     {reason: "A path that cannot be filled will never be.", spec: `{references: [{resource: a, name: b, fromFieldPath: c, toFieldPath: metadata.name}]}`, want: `[0]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := tc.status
			if status == "" {
				status = "{}"
			}
			obj := object(t, "{apiVersion: v1, kind: X, metadata: {generation: 7}, spec: "+tc.spec+", status: "+status+"}")
			if got := asText(t, Pending(obj.Object)); got != tc.want {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// TestExhaustMemoryByLargeValues: a bundle of certificates fits into an object, but not any number of them.
func TestExhaustMemoryByLargeValues(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		sizes  []int
		want   string
	}{
		"Bundle":  {reason: "It has as many bytes as an object can have filled in.", sizes: []int{256 << 10}},
		"TooLong": {reason: "It has one more.", sizes: []int{256<<10 + 1}, want: "it has more than 262144 bytes"},
		"Two":     {reason: "They have one more together.", sizes: []int{256 << 10, 1}, want: "all values together have more than 262144 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			data, refs := map[string]any{}, make([]commonv1alpha1.GenericReference, 0, len(tc.sizes))
			for i, size := range tc.sizes {
				key := fmt.Sprint("k", i)
				data[key] = strings.Repeat("x", size)
				refs = append(refs, commonv1alpha1.GenericReference{
					Resource: "configmaps", Name: "bundle", FromFieldPath: "data." + key, ToFieldPath: "spec." + key,
				})
			}
			_, err := NewResolver().Resolve(t.Context(), Request{
				Object:     object(t, "{apiVersion: example.org/v1, kind: Thing, metadata: {namespace: team-a, name: a}}"),
				References: refs, Mapper: mapper(), Reader: &objects{of: map[string]map[string]any{"ConfigMap.v1/team-a/bundle": {"data": data}}},
			})
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasSuffix(err.Error(), tc.want) {
				t.Errorf("%s Want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestNameThatIsNotThere: a name that is not there yet is missing like a source, and only the object itself can have
// it.
func TestNameThatIsNotThere(t *testing.T) {
	obj := object(t, `{apiVersion: example.org/v1, kind: Thing, metadata: {namespace: team-a, name: a}, spec: {references: [
		{resource: configmaps, nameFieldPath: spec.settings, fromFieldPath: data.region, toFieldPath: spec.region}]}}`)
	result, err := NewResolver().Resolve(t.Context(), Request{Object: obj, References: getReferences(t, obj), Mapper: mapper(), Reader: things(t)})
	const want = "cannot resolve spec.references[0]: spec.settings: there is no value"
	if failed := (&Error{}); !errors.As(err, &failed) || failed.Reason != commonv1alpha1.ReasonFieldNotFound || err.Error() != want || len(result.Sources) > 0 {
		t.Errorf("want %q, got %v, which depends on %v", want, err, result.Sources)
	}
}

// TestSettledDependency: whether another object is there is examined until the condition says so.
func TestSettledDependency(t *testing.T) {
	for conditions, want := range map[string]bool{
		"[]": false, `[{type: ReferencesResolved, status: "True", observedGeneration: 6}]`: false,
		`[{type: ReferencesResolved, status: "True", observedGeneration: 7}]`: true,
	} {
		obj := object(t, "{apiVersion: v1, kind: X, metadata: {generation: 7}, spec: {references: [{resource: a, name: b}]}, status: {conditions: "+conditions+"}}")
		if got := Settled(obj.Object); got != want {
			t.Errorf("%s: want settled %v, got %v", conditions, want, got)
		}
	}
}

func TestRefused(t *testing.T) {
	cases := map[string]struct {
		reason    string
		condition string
		want      bool
	}{
		"None":        {reason: "Nothing is known.", condition: "{type: Ready}"},
		"Permanent":   {reason: "The field or the schema must change.", condition: `{type: ReferencesResolved, status: "False", reason: TargetRejected, observedGeneration: 7}`, want: true},
		"Cycle":       {reason: "A reference must go.", condition: `{type: ReferencesResolved, status: "False", reason: Cycle, observedGeneration: 7}`, want: true},
		"Passing":     {reason: "The source may come.", condition: `{type: ReferencesResolved, status: "False", reason: SourceNotFound, observedGeneration: 7}`},
		"Unavailable": {reason: "It is tried again.", condition: `{type: ReferencesResolved, status: Unknown, reason: Unavailable, observedGeneration: 7}`},
		"Before":      {reason: "The user has changed something.", condition: `{type: ReferencesResolved, status: "False", reason: Cycle, observedGeneration: 6}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := object(t, "{apiVersion: v1, kind: X, metadata: {generation: 7}, status: {conditions: ["+tc.condition+"]}}")
			if got := Refused(obj.Object); got != tc.want {
				t.Errorf("%s Want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestRejected(t *testing.T) {
	typed := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusInternalServerError, Message: "failed to create typed patch object (a/b; c/v1, Kind=D): .spec.a: expected string, got hunter2",
	}}
	for name, tc := range map[string]struct {
		reason string
		err    error
		secret bool
		want   string
	}{
		"Type": {reason: "The field is named.", err: typed, want: "cannot apply the resolved values: .spec.a: expected string, got hunter2"},
		"Secret": {
			reason: "The API server repeats the value.", err: typed, secret: true,
			want: "cannot apply the resolved values: the API server refuses it (Invalid); the cause is omitted, because a Secret is involved",
		},
		"Down": {reason: "A broken API server says nothing about the value.", err: apierrors.NewInternalError(errors.New("x"))},
		"None": {reason: "There is no error."},
	} {
		got := ""
		if err := Rejected(tc.err, Result{Secret: tc.secret}); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: %s want %q, got %q", name, tc.reason, tc.want, got)
		}
	}
}

// TestKeepManagerBusyByFilling: what is filled is compared with managedFields, and copied.
func TestKeepManagerBusyByFilling(t *testing.T) {
	const elements = 200
	pools := make([]any, elements)
	for i := range pools {
		pools[i] = map[string]any{"name": strconv.Itoa(i)}
	}
	var refs []commonv1alpha1.GenericReference
	for i := range maxReferences {
		refs = append(refs, commonv1alpha1.GenericReference{
			Resource: "vpcs", Group: new("ec2.aws.crossplane.io"), Name: "main-vpc", FromFieldPath: "status.phase",
			ToFieldPath: fmt.Sprintf("spec.pools[*].f%d", i),
		})
	}
	obj := object(t, "{apiVersion: example.org/v1, kind: Thing, metadata: {namespace: team-a, name: thing}}")
	obj.Object["spec"] = map[string]any{"pools": pools}
	result, err := NewResolver().Resolve(t.Context(), Request{Object: obj, References: refs, Reader: things(t), Mapper: mapper()})
	failed := &Error{}
	if errors.As(err, &failed); failed.Reason != commonv1alpha1.ReasonInvalidReference || len(result.Filled) != maxFilled {
		t.Errorf("Want %d fields to be filled, got %d (%v).", maxFilled, len(result.Filled), err)
	}
}

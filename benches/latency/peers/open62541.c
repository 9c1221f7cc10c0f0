/*
 * OPC UA PubSub of open62541, UADP over UDP multicast. The talker triggers each publication itself
 * and the listener gets each value in the write callback: no timer of the library has a part in it.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "../bench.h"

#include <open62541/server.h>
#include <open62541/server_config_default.h>
#include <open62541/server_pubsub.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PUBLISHER 1
#define GROUP 100
#define WRITER 1

static UA_Server *server;
static UA_NodeId connection, variable;
static struct bench_message message;

static void good(UA_StatusCode status, const char *what)
{
	if (status != UA_STATUSCODE_GOOD) {
		fprintf(stderr, "%s: ", UA_StatusCode_name(status));
		errno = 0;
		bench_fail(what);
	}
}

static UA_StatusCode on_read(UA_Server *s, const UA_NodeId *session, void *session_context,
			     const UA_NodeId *node, void *context, UA_Boolean stamp,
			     const UA_NumericRange *range, UA_DataValue *value)
{
	UA_ByteString octets = { sizeof message, (UA_Byte *)&message };

	(void)s, (void)session, (void)session_context, (void)node, (void)context, (void)stamp;
	(void)range;
	value->hasValue = true;
	return UA_Variant_setScalarCopy(&value->value, &octets, &UA_TYPES[UA_TYPES_BYTESTRING]);
}

static UA_StatusCode on_write(UA_Server *s, const UA_NodeId *session, void *session_context,
			      const UA_NodeId *node, void *context, const UA_NumericRange *range,
			      const UA_DataValue *value)
{
	const UA_ByteString *octets = value->value.data;

	(void)s, (void)session, (void)session_context, (void)node, (void)context, (void)range;
	if (octets && octets->length == sizeof message) {
		memcpy(&message, octets->data, sizeof message);
		bench_arrived(&message);
	}
	return UA_STATUSCODE_GOOD;
}

static void open_server(const char *own_address)
{
	UA_ServerConfig config = { 0 };
	UA_NetworkAddressUrlDataType url = { UA_STRING((char *)own_address),
					     UA_STRING("opc.udp://224.0.0.22:4840/") };
	UA_PubSubConnectionConfig wanted = { 0 };
	UA_VariableAttributes attributes = UA_VariableAttributes_default;
	UA_CallbackValueSource source = { on_read, on_write };

	good(UA_ServerConfig_setMinimal(&config, 0, NULL), "server configuration");
	server = UA_Server_newWithConfig(&config);
	attributes.dataType = UA_TYPES[UA_TYPES_BYTESTRING].typeId;
	attributes.accessLevel = UA_ACCESSLEVELMASK_READ | UA_ACCESSLEVELMASK_WRITE;
	good(UA_Server_addCallbackValueSourceVariableNode(
		     server, UA_NODEID_NULL, UA_NS0ID(OBJECTSFOLDER), UA_NS0ID(HASCOMPONENT),
		     UA_QUALIFIEDNAME(1, "message"), UA_NS0ID(BASEDATAVARIABLETYPE), attributes,
		     source, NULL, &variable),
	     "variable");
	wanted.name = UA_STRING("latency");
	wanted.transportProfileUri =
		UA_STRING("http://opcfoundation.org/UA-Profile/Transport/pubsub-udp-uadp");
	UA_Variant_setScalar(&wanted.address, &url,
			     &UA_TYPES[UA_TYPES_NETWORKADDRESSURLDATATYPE]);
	wanted.publisherId.idType = UA_PUBLISHERIDTYPE_UINT16;
	wanted.publisherId.id.uint16 = PUBLISHER;
	good(UA_Server_addPubSubConnection(server, &wanted, &connection), "connection");
}

static UA_NodeId add_writer(void)
{
	UA_PublishedDataSetConfig set = { .name = UA_STRING("set"),
					  .publishedDataSetType =
						  UA_PUBSUB_DATASET_PUBLISHEDITEMS };
	UA_DataSetFieldConfig field = { 0 };
	UA_UadpWriterGroupMessageDataType header;
	UA_WriterGroupConfig group = { 0 };
	UA_DataSetWriterConfig writer = { 0 };
	UA_NodeId set_id, group_id;

	good(UA_Server_addPublishedDataSet(server, &set, &set_id).addResult, "data set");
	field.dataSetFieldType = UA_PUBSUB_DATASETFIELD_VARIABLE;
	field.field.variable.fieldNameAlias = UA_STRING("message");
	field.field.variable.publishParameters.publishedVariable = variable;
	field.field.variable.publishParameters.attributeId = UA_ATTRIBUTEID_VALUE;
	good(UA_Server_addDataSetField(server, set_id, &field, NULL).result, "field");
	UA_UadpWriterGroupMessageDataType_init(&header);
	header.networkMessageContentMask = UA_UADPNETWORKMESSAGECONTENTMASK_PUBLISHERID |
					   UA_UADPNETWORKMESSAGECONTENTMASK_GROUPHEADER |
					   UA_UADPNETWORKMESSAGECONTENTMASK_WRITERGROUPID |
					   UA_UADPNETWORKMESSAGECONTENTMASK_PAYLOADHEADER;
	group.name = UA_STRING("group");
	group.publishingInterval = 3600000; /* an hour: only when triggered */
	group.writerGroupId = GROUP;
	group.encodingMimeType = UA_PUBSUB_ENCODING_UADP;
	UA_ExtensionObject_setValue(&group.messageSettings, &header,
				    &UA_TYPES[UA_TYPES_UADPWRITERGROUPMESSAGEDATATYPE]);
	good(UA_Server_addWriterGroup(server, connection, &group, &group_id), "group");
	writer.name = UA_STRING("writer");
	writer.dataSetWriterId = WRITER;
	writer.keyFrameCount = 1;
	good(UA_Server_addDataSetWriter(server, group_id, set_id, &writer, NULL), "writer");
	return group_id;
}

static void add_reader(void)
{
	UA_ReaderGroupConfig group = { .name = UA_STRING("group") };
	UA_FieldMetaData field;
	UA_FieldTargetDataType target;
	UA_DataSetReaderConfig reader = { 0 };
	UA_NodeId group_id;

	good(UA_Server_addReaderGroup(server, connection, &group, &group_id), "group");
	UA_FieldMetaData_init(&field);
	field.name = UA_STRING("message");
	field.dataType = UA_TYPES[UA_TYPES_BYTESTRING].typeId;
	field.builtInType = UA_NS0ID_BYTESTRING;
	field.valueRank = UA_VALUERANK_SCALAR;
	UA_FieldTargetDataType_init(&target);
	target.attributeId = UA_ATTRIBUTEID_VALUE;
	target.targetNodeId = variable;
	reader.name = UA_STRING("reader");
	reader.publisherId.idType = UA_PUBLISHERIDTYPE_UINT16;
	reader.publisherId.id.uint16 = PUBLISHER;
	reader.writerGroupId = GROUP;
	reader.dataSetWriterId = WRITER;
	reader.dataSetMetaData.name = UA_STRING("set");
	reader.dataSetMetaData.fieldsSize = 1;
	reader.dataSetMetaData.fields = &field;
	reader.subscribedDataSetType = UA_PUBSUB_SDS_TARGET;
	reader.subscribedDataSet.target.targetVariablesSize = 1;
	reader.subscribedDataSet.target.targetVariables = &target;
	good(UA_Server_addDataSetReader(server, group_id, &reader, NULL), "reader");
}

void bench_talker(const char *variant)
{
	(void)variant;
	open_server(BENCH_TALKER);
	UA_NodeId group = add_writer();
	good(UA_Server_run_startup(server), "start");
	good(UA_Server_enableAllPubSubComponents(server), "enable");
	for (int i = 0; i < 100; i++)
		UA_Server_run_iterate(server, false);
	while (bench_next(&message))
		good(UA_Server_triggerWriterGroupPublish(server, group), "publish");
}

void bench_listener(const char *variant)
{
	(void)variant;
	open_server(BENCH_LISTENER);
	add_reader();
	good(UA_Server_run_startup(server), "start");
	good(UA_Server_enableAllPubSubComponents(server), "enable");
	bench_ready();
	for (;;)
		UA_Server_run_iterate(server, true);
}

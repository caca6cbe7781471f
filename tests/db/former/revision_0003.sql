BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0003');
CREATE TABLE assignment (
	question_id CHAR(32) NOT NULL, 
	user_id CHAR(32) NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT, 
	until DATETIME, 
	id CHAR(32) NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_assignment PRIMARY KEY (id), 
	CONSTRAINT ck_assignment_state CHECK (state in ('open', 'skipped', 'done')), 
	CONSTRAINT fk_assignment_question_id_question FOREIGN KEY(question_id) REFERENCES question (id), 
	CONSTRAINT fk_assignment_user_id_user FOREIGN KEY(user_id) REFERENCES user (id), 
	CONSTRAINT uq_assignment_question_id UNIQUE (question_id, user_id)
);
INSERT INTO "assignment" VALUES('01a2028bc1ab7478a0c38ae9b3847e89','01a2028bc1b67289b752ec2b54c7b468','done',NULL,NULL,'01a2028bc1cf72829af4fd2b5e323d9c','2026-11-22 09:17:23.279592');
INSERT INTO "assignment" VALUES('01a2028bc1ab7478a0c38ae9b3847e89','01a2028bc1b875ca9932fc21aadbaf61','done',NULL,NULL,'01a2028bc47270fba3ba0c1499e3ff99','2026-11-22 09:17:23.954643');
INSERT INTO "assignment" VALUES('01a2028bc1ab7478a0c38aea319dcc27','01a2028bc1b67289b752ec2b54c7b468','open',NULL,'2026-11-22 11:17:24.044330','01a2028bc4c276a0895f384263200e36','2026-11-22 09:17:24.034953');
CREATE TABLE draft (
	trace_id CHAR(32) NOT NULL, 
	content JSON NOT NULL, 
	saved_at DATETIME NOT NULL, 
	CONSTRAINT pk_draft PRIMARY KEY (trace_id), 
	CONSTRAINT fk_draft_trace_id_trace FOREIGN KEY(trace_id) REFERENCES trace (id)
);
CREATE TABLE edit (
	trace_id CHAR(32) NOT NULL, 
	action TEXT NOT NULL, 
	"before" JSON NOT NULL, 
	step_id CHAR(32), 
	editor_id CHAR(32), 
	at DATETIME NOT NULL, 
	id CHAR(32) NOT NULL, 
	CONSTRAINT pk_edit PRIMARY KEY (id), 
	CONSTRAINT fk_edit_editor_id_user FOREIGN KEY(editor_id) REFERENCES user (id), 
	CONSTRAINT fk_edit_step_id_step FOREIGN KEY(step_id) REFERENCES step (id), 
	CONSTRAINT fk_edit_trace_id_trace FOREIGN KEY(trace_id) REFERENCES trace (id)
);
INSERT INTO "edit" VALUES('01a2028bc23c77da9b19e7f81b17daff','thought','{"thought": "a thought only"}','01a2028bc3dd737fb99e94a94db220c8','01a2028bc1b67289b752ec2b54c7b468','2026-11-22 09:17:23.828984','01a2028bc3f571ac9054ff17030924f4');
INSERT INTO "edit" VALUES('01a2028bc23c77da9b19e7f81b17daff','undo','{"removed_at": null}','01a2028bc40e721b94434e9c3fd0ac2a','01a2028bc1b67289b752ec2b54c7b468','2026-11-22 09:17:23.878739','01a2028bc426768facef2f1109fd1e3b');
INSERT INTO "edit" VALUES('01a2028bc23c77da9b19e7f81b17daff','status','{"status": "draft"}',NULL,'01a2028bc1b67289b752ec2b54c7b468','2026-11-22 09:17:23.903330','01a2028bc43f724a9f264675d99ac5ce');
INSERT INTO "edit" VALUES('01a2028bc23c77da9b19e7f81b17daff','status','{"status": "submitted"}',NULL,'01a2028bc1b875ca9932fc21aadbaf61','2026-11-22 09:17:23.934217','01a2028bc45e76d18cc4839d4436d377');
INSERT INTO "edit" VALUES('01a2028bc473758f8cdd2a9e59a84aba','status','{"status": "draft"}',NULL,'01a2028bc1b875ca9932fc21aadbaf61','2026-11-22 09:17:24.003417','01a2028bc4a37455a9581d2d13cf41e7');
INSERT INTO "edit" VALUES('01a2028bc473758f8cdd2a9e59a84aba','status','{"status": "submitted"}',NULL,'01a2028bc1b67289b752ec2b54c7b468','2026-11-22 09:17:24.020830','01a2028bc4b4716ab2bfffd6d510bede');
INSERT INTO "edit" VALUES('01a2028bc4e57404972d92f22fd7e75d','status','{"status": "draft"}',NULL,NULL,'2026-11-22 09:17:24.110114','01a2028bc50e7495ba1110f987e7cc9b');
INSERT INTO "edit" VALUES('01a2028bc516702f8719fd7dac6ca554','status','{"status": "draft"}',NULL,NULL,'2026-11-22 09:17:24.128852','01a2028bc52076d793e5b18a02e333fb');
CREATE TABLE judgement (
	trace_id CHAR(32) NOT NULL, 
	aspect TEXT NOT NULL, 
	value TEXT NOT NULL, 
	judge_id CHAR(32), 
	other_trace_id CHAR(32), 
	comment TEXT NOT NULL, 
	id CHAR(32) NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_judgement PRIMARY KEY (id), 
	CONSTRAINT fk_judgement_judge_id_user FOREIGN KEY(judge_id) REFERENCES user (id), 
	CONSTRAINT fk_judgement_trace_id_trace FOREIGN KEY(trace_id) REFERENCES trace (id)
);
INSERT INTO "judgement" VALUES('01a2028bc23c77da9b19e7f81b17daff','approval','approved','01a2028bc1b875ca9932fc21aadbaf61',NULL,'good','01a2028bc45e76d18cc4839e8f04cb97','2026-11-22 09:17:23.934401');
INSERT INTO "judgement" VALUES('01a2028bc473758f8cdd2a9e59a84aba','approval','rejected','01a2028bc1b67289b752ec2b54c7b468',NULL,'the wrong quay','01a2028bc4b4716ab2bfffd736d9db3a','2026-11-22 09:17:24.020959');
INSERT INTO "judgement" VALUES('01a2028bc4e57404972d92f22fd7e75d','f1','1.000000',NULL,NULL,'','01a2028bc52e74a5890386e7152fdb0d','2026-11-22 09:17:24.142564');
CREATE TABLE library (
	name TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	card JSON NOT NULL, 
	id CHAR(32) NOT NULL, 
	frozen_at DATETIME NOT NULL, 
	CONSTRAINT pk_library PRIMARY KEY (id), 
	CONSTRAINT uq_library_name UNIQUE (name, number)
);
INSERT INTO "library" VALUES('default',1,'{"questions": 1}','01a2028bc4d872b088a4a462000ec226','2026-11-22 09:17:24.056273');
CREATE TABLE library_item (
	library_id CHAR(32) NOT NULL, 
	position INTEGER NOT NULL, 
	trace_id CHAR(32) NOT NULL, 
	CONSTRAINT pk_library_item PRIMARY KEY (library_id, position), 
	CONSTRAINT fk_library_item_library_id_library FOREIGN KEY(library_id) REFERENCES library (id), 
	CONSTRAINT fk_library_item_trace_id_trace FOREIGN KEY(trace_id) REFERENCES trace (id)
);
INSERT INTO "library_item" VALUES('01a2028bc4d872b088a4a462000ec226',1,'01a2028bc23c77da9b19e7f81b17daff');
CREATE TABLE project (
	name TEXT NOT NULL, 
	world TEXT NOT NULL, 
	guidelines TEXT NOT NULL, 
	tools JSON NOT NULL, 
	overlap INTEGER NOT NULL, 
	id CHAR(32) NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_project PRIMARY KEY (id), 
	CONSTRAINT uq_project_name UNIQUE (name)
);
INSERT INTO "project" VALUES('harbours','harbour','Cite é everything.','["read", "wikisearch", "runQuery"]',1,'01a2028bc19d77f0989cdd64d5226f62','2026-11-22 09:17:23.229374');
CREATE TABLE question (
	project_id CHAR(32) NOT NULL, 
	position INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	source_id TEXT, 
	dataset TEXT, 
	split TEXT, 
	kind TEXT, 
	gold_answers JSON NOT NULL, 
	decomposition JSON NOT NULL, 
	details JSON NOT NULL, 
	completed INTEGER NOT NULL, 
	id CHAR(32) NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_question PRIMARY KEY (id), 
	CONSTRAINT fk_question_project_id_project FOREIGN KEY(project_id) REFERENCES project (id), 
	CONSTRAINT uq_question_project_id UNIQUE (project_id, position)
);
INSERT INTO "question" VALUES('01a2028bc19d77f0989cdd64d5226f62',1,'Who built quay 1?','q1','quays','train','who','[{"text": "Ada Reed", "entity": "Q5"}]','[]','{"hops": 1}',1,'01a2028bc1ab7478a0c38ae9b3847e89','2026-11-22 09:17:23.243017');
INSERT INTO "question" VALUES('01a2028bc19d77f0989cdd64d5226f62',2,'Who built quay 2?','q2','quays','train','who','[{"text": "Ada Reed", "entity": "Q5"}]','[]','{"hops": 2}',0,'01a2028bc1ab7478a0c38aea319dcc27','2026-11-22 09:17:23.243028');
INSERT INTO "question" VALUES('01a2028bc19d77f0989cdd64d5226f62',3,'Who built quay 3?','q3','quays','train','who','[{"text": "Ada Reed", "entity": "Q5"}]','[]','{"hops": 3}',0,'01a2028bc1ab7478a0c38aeb15ec05ed','2026-11-22 09:17:23.243032');
INSERT INTO "question" VALUES('01a2028bc19d77f0989cdd64d5226f62',4,'Who built quay 4?','q4','quays','train','who','[{"text": "Ada Reed", "entity": "Q5"}]','[]','{"hops": 4}',0,'01a2028bc1ab7478a0c38aecf5546917','2026-11-22 09:17:23.243036');
CREATE TABLE run (
	name TEXT NOT NULL, 
	reasoner TEXT NOT NULL, 
	world TEXT NOT NULL, 
	configuration JSON NOT NULL, 
	id CHAR(32) NOT NULL, 
	started_at DATETIME NOT NULL, 
	finished_at DATETIME, library_id CHAR(32), 
	CONSTRAINT pk_run PRIMARY KEY (id)
);
INSERT INTO "run" VALUES('ask','humaniq','harbour','{"way": {"reasoner": "humaniq", "options": {"k": 3, "selection": "dpp"}, "library": "default:1"}, "limits": {"steps": 20, "seconds": 600.0}, "worker": "4711:1:host", "model": "gpt-4.1"}','01a2028bc4de76fd9a55212b5385d560','2026-11-22 09:17:24.062568','2026-11-22 09:17:24.111912','01a2028bc4d872b088a4a462000ec226');
INSERT INTO "run" VALUES('verify','replay','harbour','{"project_id": "01a2028b-c19d-77f0-989c-dd64d5226f62", "questions": ["01a2028b-c1ab-7478-a0c3-8ae9b3847e89", "01a2028b-c1ab-7478-a0c3-8aea319dcc27", "01a2028b-c1ab-7478-a0c3-8aeb15ec05ed", "01a2028b-c1ab-7478-a0c3-8aecf5546917"], "reasoner": "replay", "options": {}, "library": "default:1", "most": null, "limits": {"steps": 300}}','01a2028bc5107030b3ec6d52cb591ba4','2026-11-22 09:17:24.112967',NULL,'01a2028bc4d872b088a4a462000ec226');
CREATE TABLE step (
	trace_id CHAR(32) NOT NULL, 
	position INTEGER NOT NULL, 
	thought TEXT NOT NULL, 
	tool TEXT, 
	arguments JSON NOT NULL, 
	origins JSON NOT NULL, 
	observation TEXT, 
	data JSON, 
	error TEXT, 
	rating INTEGER, 
	latency DOUBLE, 
	started_at DATETIME NOT NULL, 
	finished_at DATETIME, 
	wall_seconds DOUBLE, 
	active_seconds DOUBLE, 
	parent_id CHAR(32), 
	removed_at DATETIME, 
	version INTEGER NOT NULL, 
	id CHAR(32) NOT NULL, usage JSON DEFAULT '{}' NOT NULL, 
	CONSTRAINT pk_step PRIMARY KEY (id), 
	CONSTRAINT ck_step_rating CHECK (rating is null or rating between 1 and 5), 
	CONSTRAINT fk_step_parent_id_step FOREIGN KEY(parent_id) REFERENCES step (id), 
	CONSTRAINT fk_step_trace_id_trace FOREIGN KEY(trace_id) REFERENCES trace (id)
);
INSERT INTO "step" VALUES('01a2028bc23c77da9b19e7f81b17daff',1,'look 0 «é» 👩‍👩‍👧','read','{"title": "Quay 0"}','{"title": {"from": "typed"}}','Quay 0 was built by Ada Reed.','{"title": "Quay 0"}',NULL,1,0.25,'2026-11-22 09:17:23.439642','2026-11-22 09:17:23.464662',12.0,8.0,NULL,NULL,3,'01a2028bc26f70ef90b3597c527dd2d4','{}');
INSERT INTO "step" VALUES('01a2028bc23c77da9b19e7f81b17daff',2,'look 1 «é» 👩‍👩‍👧','read','{"title": "Quay 1"}','{"title": {"from": "typed"}}',NULL,NULL,'There is no article Quay 7; it may be called Quay (harbour).',2,0.25,'2026-11-22 09:17:23.494802','2026-11-22 09:17:23.497544',12.0,8.0,NULL,NULL,3,'01a2028bc2a677ffbe5e8630ebed1e61','{"tool": {"model": "gpt-4.1", "calls": 1, "input_tokens": 90, "output_tokens": 10, "seconds": 0.5, "cost": 0.01}}');
INSERT INTO "step" VALUES('01a2028bc23c77da9b19e7f81b17daff',3,'look 2 «é» 👩‍👩‍👧','read','{"title": "Quay 2"}','{"title": {"from": "typed"}}',NULL,NULL,'The query is no SELECT or ASK.',3,0.25,'2026-11-22 09:17:23.536556','2026-11-22 09:17:23.551749',12.0,8.0,NULL,NULL,3,'01a2028bc2d07643832948ac19eacfdd','{}');
INSERT INTO "step" VALUES('01a2028bc23c77da9b19e7f81b17daff',4,'look 3 «é» 👩‍👩‍👧','read','{"title": "Quay 3"}','{"title": {"from": "typed"}}',NULL,NULL,'read cannot run: title is missing.',4,0.25,'2026-11-22 09:17:23.584203','2026-11-22 09:17:23.597965',12.0,8.0,NULL,NULL,3,'01a2028bc30077aea4cf7cb1adba2697','{}');
INSERT INTO "step" VALUES('01a2028bc23c77da9b19e7f81b17daff',5,'look 4 «é» 👩‍👩‍👧','read','{"title": "Quay 4"}','{"title": {"from": "typed"}}',NULL,NULL,'The model gave no reply.',5,0.25,'2026-11-22 09:17:23.625493','2026-11-22 09:17:23.638876',12.0,8.0,NULL,NULL,3,'01a2028bc3297152834c140f8f385808','{}');
INSERT INTO "step" VALUES('01a2028bc23c77da9b19e7f81b17daff',6,'look 5 «é» 👩‍👩‍👧','read','{"title": "Quay 5"}','{"title": {"from": "typed"}}',NULL,NULL,'the query reached the limit of 30 s; make it smaller',1,0.25,'2026-11-22 09:17:23.665413','2026-11-22 09:17:23.679212',12.0,8.0,NULL,NULL,3,'01a2028bc35171979e526a8e1a38712e','{}');
INSERT INTO "step" VALUES('01a2028bc23c77da9b19e7f81b17daff',7,'look 6 «é» 👩‍👩‍👧','read','{"title": "Quay 6"}','{"title": {"from": "typed"}}',NULL,NULL,'the graph cannot be opened; import the world again',2,0.25,'2026-11-22 09:17:23.705485','2026-11-22 09:17:23.719657',12.0,8.0,NULL,NULL,3,'01a2028bc37970b2a992b3fb9923a858','{}');
INSERT INTO "step" VALUES('01a2028bc23c77da9b19e7f81b17daff',8,'look 7 «é» 👩‍👩‍👧','read','{"title": "Quay 7"}','{"title": {"from": "typed"}}',NULL,NULL,'Something else went wrong.',3,0.25,'2026-11-22 09:17:23.758013','2026-11-22 09:17:23.772338',12.0,8.0,NULL,NULL,3,'01a2028bc3ae7546bc0d4a4b6e681bbc','{}');
INSERT INTO "step" VALUES('01a2028bc23c77da9b19e7f81b17daff',9,'a better thought',NULL,'{}','{}',NULL,NULL,NULL,NULL,NULL,'2026-11-22 09:17:23.805270','2026-11-22 09:17:23.805195',NULL,NULL,NULL,NULL,2,'01a2028bc3dd737fb99e94a94db220c8','{}');
INSERT INTO "step" VALUES('01a2028bc23c77da9b19e7f81b17daff',10,'undone',NULL,'{}','{}',NULL,NULL,NULL,NULL,NULL,'2026-11-22 09:17:23.854313','2026-11-22 09:17:23.854218',NULL,NULL,NULL,'2026-11-22 09:17:23.878832',2,'01a2028bc40e721b94434e9c3fd0ac2a','{}');
INSERT INTO "step" VALUES('01a2028bc473758f8cdd2a9e59a84aba',1,'look 0 «é» 👩‍👩‍👧','read','{"title": "Quay 0"}','{"title": {"from": "typed"}}','Quay 0 was built by Ada Reed.','{"title": "Quay 0"}',NULL,1,0.25,'2026-11-22 09:17:23.439642','2026-11-22 09:17:23.464662',12.0,8.0,NULL,NULL,1,'01a2028bc47470229b8a93a7b4899d08','{}');
INSERT INTO "step" VALUES('01a2028bc473758f8cdd2a9e59a84aba',2,'look 1 «é» 👩‍👩‍👧','read','{"title": "Quay 1"}','{"title": {"from": "typed"}}',NULL,NULL,'There is no article Quay 7; it may be called Quay (harbour).',2,0.25,'2026-11-22 09:17:23.494802','2026-11-22 09:17:23.497544',12.0,8.0,NULL,NULL,1,'01a2028bc47577988b67c590fb4e6ef5','{"tool": {"model": "gpt-4.1", "calls": 1, "input_tokens": 90, "output_tokens": 10, "seconds": 0.5, "cost": 0.01}}');
INSERT INTO "step" VALUES('01a2028bc473758f8cdd2a9e59a84aba',3,'search','wikisearch','{"query": "quay"}','{}','three hits','{"hits": [{"title": "Quay"}]}',NULL,NULL,0.02,'2026-11-22 09:17:23.973065','2026-11-22 09:17:23.987651',NULL,NULL,NULL,NULL,2,'01a2028bc48576548d3ae772a75d3029','{}');
INSERT INTO "step" VALUES('01a2028bc4c47321b6711e2b08f1cb31',1,'interrupted','read','{"title": "Quay 2"}','{}',NULL,NULL,NULL,NULL,NULL,'2026-11-22 09:17:24.043157',NULL,NULL,NULL,NULL,NULL,1,'01a2028bc4cb753e9bacc65805e60223','{}');
INSERT INTO "step" VALUES('01a2028bc4e57404972d92f22fd7e75d',1,'I search.','wikisearch','{"query": "quay 3"}','{}','Quay 3 was built by Ada Reed.','{"hits": []}',NULL,NULL,0.1,'2026-11-22 09:17:24.081374','2026-11-22 09:17:24.088773',NULL,NULL,NULL,NULL,2,'01a2028bc4f174549c76bfb159c4397b','{"thought": {"model": "gpt-4.1", "calls": 1, "input_tokens": 90, "output_tokens": 10, "seconds": 0.5, "cost": 0.01}}');
INSERT INTO "step" VALUES('01a2028bc4e57404972d92f22fd7e75d',2,'I call.','nope','{}','{}',NULL,NULL,'there is no tool nope here; use one of read',NULL,NULL,'2026-11-22 09:17:24.097230','2026-11-22 09:17:24.097173',NULL,NULL,NULL,NULL,1,'01a2028bc50177e1bd0311e1c78c64fb','{}');
INSERT INTO "step" VALUES('01a2028bc52775698f7e8998efb7134b',1,'I read.','read','{"title": "Quay 2"}','{}',NULL,NULL,NULL,NULL,NULL,'2026-11-22 09:17:24.137182',NULL,NULL,NULL,NULL,NULL,1,'01a2028bc52977e59a1045c7229e84aa','{}');
CREATE TABLE trace (
	question_id CHAR(32) NOT NULL, 
	author_id CHAR(32), 
	run_id CHAR(32), 
	reasoner TEXT NOT NULL, 
	status TEXT NOT NULL, 
	answer_text TEXT, 
	answer_graph TEXT, 
	answer_model TEXT, 
	final_answer TEXT, 
	final_thought TEXT, 
	parent_id CHAR(32), 
	parent_position INTEGER, 
	started_at DATETIME NOT NULL, 
	submitted_at DATETIME, 
	wall_seconds DOUBLE, 
	active_seconds DOUBLE, 
	configuration JSON NOT NULL, 
	cost JSON NOT NULL, 
	version INTEGER NOT NULL, 
	id CHAR(32) NOT NULL, ending TEXT, failure TEXT, 
	CONSTRAINT pk_trace PRIMARY KEY (id), 
	CONSTRAINT ck_trace_status CHECK (status in ('draft', 'submitted', 'approved', 'rejected', 'failed')), 
	CONSTRAINT fk_trace_author_id_user FOREIGN KEY(author_id) REFERENCES user (id), 
	CONSTRAINT fk_trace_question_id_question FOREIGN KEY(question_id) REFERENCES question (id), 
	CONSTRAINT fk_trace_run_id_run FOREIGN KEY(run_id) REFERENCES run (id)
);
INSERT INTO "trace" VALUES('01a2028bc1ab7478a0c38ae9b3847e89','01a2028bc1b67289b752ec2b54c7b468',NULL,'human','approved','Ada Reed','Q5',NULL,'Ada Reed','both agree',NULL,NULL,'2026-11-22 09:17:23.388369','2026-11-22 09:17:23.903219',0.51485,64.0,'{}','{}',31,'01a2028bc23c77da9b19e7f81b17daff',NULL,NULL);
INSERT INTO "trace" VALUES('01a2028bc1ab7478a0c38ae9b3847e89','01a2028bc1b875ca9932fc21aadbaf61',NULL,'human','rejected',NULL,NULL,NULL,'Ada',NULL,'01a2028bc23c77da9b19e7f81b17daff',2,'2026-11-22 09:17:23.955604','2026-11-22 09:17:24.003335',0.047731,16.0,'{}','{}',5,'01a2028bc473758f8cdd2a9e59a84aba',NULL,NULL);
INSERT INTO "trace" VALUES('01a2028bc1ab7478a0c38aea319dcc27','01a2028bc1b67289b752ec2b54c7b468',NULL,'human','draft',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-22 09:17:24.036509',NULL,NULL,NULL,'{}','{}',2,'01a2028bc4c47321b6711e2b08f1cb31',NULL,NULL);
INSERT INTO "trace" VALUES('01a2028bc1ab7478a0c38aeb15ec05ed',NULL,'01a2028bc4de76fd9a55212b5385d560','humaniq','submitted','Ada Reed',NULL,NULL,'Ada Reed',NULL,NULL,NULL,'2026-11-22 09:17:24.069833','2026-11-22 09:17:24.110018',3.0,NULL,'{"way": {"reasoner": "humaniq", "options": {"k": 3, "selection": "dpp"}, "library": "default:1"}, "limits": {"steps": 20, "seconds": 600.0}, "worker": "4711:1:host", "model": "gpt-4.1", "demonstrations": [{"id": "01a2028b-c23c-77da-9b19-e7f81b17daff", "question": "Who built quay 1?"}], "form": "chat", "demonstrations_shown": 1, "response": "Ada Reed built it.", "links": [{"start": 0, "end": 8, "step": 1}], "agreement": {"state": "all", "words": "All sources agree.", "answers": {"text": "Ada Reed", "graph": null}, "agreeing": ["text"]}}','{"model": "gpt-4.1", "calls": 1, "input_tokens": 90, "output_tokens": 10, "seconds": 0.5, "cost": 0.01}',6,'01a2028bc4e57404972d92f22fd7e75d','answered',NULL);
INSERT INTO "trace" VALUES('01a2028bc1ab7478a0c38aecf5546917',NULL,'01a2028bc5107030b3ec6d52cb591ba4','replay','failed',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-22 09:17:24.118314','2026-11-22 09:17:24.128803',0.0,NULL,'{"project_id": "01a2028b-c19d-77f0-989c-dd64d5226f62", "questions": ["01a2028b-c1ab-7478-a0c3-8ae9b3847e89", "01a2028b-c1ab-7478-a0c3-8aea319dcc27", "01a2028b-c1ab-7478-a0c3-8aeb15ec05ed", "01a2028b-c1ab-7478-a0c3-8aecf5546917"], "reasoner": "replay", "options": {}, "library": "default:1", "most": null, "limits": {"steps": 300}}','{}',2,'01a2028bc516702f8719fd7dac6ca554','refused','I can''t follow any demonstration here');
INSERT INTO "trace" VALUES('01a2028bc1ab7478a0c38aea319dcc27',NULL,'01a2028bc5107030b3ec6d52cb591ba4','replay','draft',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-22 09:17:24.135290',NULL,NULL,NULL,'{"project_id": "01a2028b-c19d-77f0-989c-dd64d5226f62", "questions": ["01a2028b-c1ab-7478-a0c3-8ae9b3847e89", "01a2028b-c1ab-7478-a0c3-8aea319dcc27", "01a2028b-c1ab-7478-a0c3-8aeb15ec05ed", "01a2028b-c1ab-7478-a0c3-8aecf5546917"], "reasoner": "replay", "options": {}, "library": "default:1", "most": null, "limits": {"steps": 300}}','{}',2,'01a2028bc52775698f7e8998efb7134b',NULL,NULL);
CREATE TABLE user (
	name TEXT NOT NULL, 
	roles JSON NOT NULL, 
	id CHAR(32) NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_user PRIMARY KEY (id), 
	CONSTRAINT uq_user_name UNIQUE (name)
);
INSERT INTO "user" VALUES('ada','["annotator", "reviewer", "admin"]','01a2028bc1b67289b752ec2b54c7b468','2026-11-22 09:17:23.254954');
INSERT INTO "user" VALUES('ben','["annotator", "reviewer", "admin"]','01a2028bc1b875ca9932fc21aadbaf61','2026-11-22 09:17:23.256861');
CREATE INDEX ix_question_queue ON question (project_id, completed, position);
CREATE INDEX ix_question_source ON question (project_id, source_id);
CREATE INDEX ix_assignment_user ON assignment (user_id, state);
CREATE INDEX ix_trace_author ON trace (author_id, status, started_at);
CREATE INDEX ix_trace_parent ON trace (parent_id);
CREATE INDEX ix_trace_question ON trace (question_id, status);
CREATE INDEX ix_trace_status ON trace (status, submitted_at, id);
CREATE INDEX ix_judgement_trace_id ON judgement (trace_id);
CREATE INDEX ix_library_item_trace_id ON library_item (trace_id);
CREATE INDEX ix_step_trace ON step (trace_id, removed_at, rating);
CREATE UNIQUE INDEX ux_step_position ON step (trace_id, position) WHERE removed_at is null;
CREATE INDEX ix_edit_trace_id ON edit (trace_id);
CREATE INDEX ix_trace_run ON trace (run_id, question_id);
CREATE INDEX ix_step_tool ON step (tool, latency, rating, removed_at, trace_id, position, started_at, finished_at);
CREATE INDEX ix_step_failed ON step (tool, trace_id) WHERE error is not null;
CREATE INDEX ix_step_modelled ON step (tool, trace_id) WHERE cast(usage as text) like '%"tool": {%';
COMMIT;

"""Which chunks find the answers? Compare splitters of any kind on questions of your own."""

from langchain_text_splitters import RecursiveCharacterTextSplitter

from rag_splitters import RecursiveChunker, SentenceChunker
from rag_splitters.evaluation import Question, compare, suggestion
from rag_splitters.models import HashingEmbeddings

DOCUMENTS = {
    "harbour.md": "The harbour opened in 1871. It was small and cold. Herring was its only trade. "
    "When the railway came, the boats went elsewhere. The harbour closed in 1954.\n\n"
    "The crane still stands. It was built in Leith, and it lifted nine tons.",
    "school.md": "The school opened in 1902 with forty children. Its stove burned peat.\n\n"
    "Miss Orr taught there for thirty years. The bell came from a ship that ran aground.",
}
ANSWERS = {
    "When did the harbour close?": ("harbour.md", "The harbour closed in 1954."),
    "How much did the crane lift?": ("harbour.md", "it lifted nine tons"),
    "What did the stove burn?": ("school.md", "Its stove burned peat."),
    "Where did the bell come from?": ("school.md", "The bell came from a ship"),
}

questions = []
for text, (name, answer) in ANSWERS.items():
    start = DOCUMENTS[name].index(answer)
    questions.append(Question(text, name, ((start, start + len(answer)),)))

report = compare(
    {
        "sentence": SentenceChunker(chunk_size=80),
        "recursive": RecursiveChunker(chunk_size=160),
        "LangChain": RecursiveCharacterTextSplitter(chunk_size=160, chunk_overlap=0),
        "lines": str.splitlines,
    },
    DOCUMENTS,
    questions,
    HashingEmbeddings(),  # your model goes here, LangChain's or LlamaIndex's
    k=2,
    budgets=(20, 40, 80),
)
print(report)
print(suggestion(report, folds=2))
report.to_html("report.html")
print(f"recall of whole sentences: {report.metric('sentence', 'recall').percent()}")

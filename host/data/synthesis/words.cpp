#include "host/data/synthesis/words.h"

namespace cfaa {
namespace {

using std::string_view;

constexpr string_view kTopics[kMostTopics][kWordsPerTopic] = {
    {"garlic",  "butter",   "oven",    "recipe", "spices", "soup",    "baking", "dough",
     "kitchen", "roasting", "flavour", "chef",   "pepper", "stew",    "grill",  "pastry",
     "herbs",   "sauce",    "dinner",  "cheese", "onions", "noodles", "basil",  "bread"},
    {"galaxy",   "rocket",     "orbit",    "planets", "astronauts", "telescope",
     "comet",    "lunar",      "nebula",   "cosmos",  "satellite",  "stars",
     "gravity",  "spacecraft", "asteroid", "eclipse", "mars",       "launch",
     "universe", "starlight",  "alien",    "shuttle", "meteor",     "saturn"},
    {"castle",   "knights",  "medieval", "kingdom",  "sword",   "throne",   "crusade", "armour",
     "feudal",   "queen",    "siege",    "dynasty",  "empire",  "monarch",  "shield",  "battle",
     "chivalry", "fortress", "royal",    "peasants", "dungeon", "heraldry", "duke",    "crown"},
    {"football",   "stadium",  "coach",   "athlete",  "marathon", "tournament",
     "goalkeeper", "training", "sprint",  "league",   "champion", "basketball",
     "referee",    "tennis",   "workout", "medal",    "hockey",   "boxing",
     "cycling",    "playoffs", "rugby",   "swimming", "score",    "gym"},
    {"romance",  "kisses",    "wedding",    "passion",   "lovers",     "heartbreak",
     "longing",  "marriage",  "sweetheart", "courtship", "tenderness", "affair",
     "jealousy", "valentine", "desire",     "soulmate",  "flirting",   "bride",
     "embrace",  "devotion",  "proposal",   "intimacy",  "crush",      "honeymoon"},
    {"ghost",    "haunted",  "horror", "vampire", "nightmare", "scream",   "graveyard", "demon",
     "blood",    "zombie",   "creepy", "witch",   "terror",    "skeleton", "cursed",    "monster",
     "darkness", "werewolf", "seance", "eerie",   "coffin",    "exorcism", "phantom",   "dread"},
    {"software", "computer",    "robot",    "algorithm", "code",    "hacker",
     "internet", "laptop",      "circuit",  "processor", "network", "digital",
     "gadget",   "programming", "database", "server",    "silicon", "app",
     "pixels",   "encryption",  "keyboard", "chip",      "startup", "automation"},
    {"garden",     "roses",   "soil",   "seeds", "blossom",  "tulips",  "pruning", "greenhouse",
     "orchard",    "compost", "ferns",  "lawn",  "petals",   "ivy",     "shrubs",  "planting",
     "vegetables", "bees",    "meadow", "hedge", "lavender", "sprouts", "harvest", "watering"},
    {"puppy",  "kitten",   "dog",          "cat",      "leash",   "paws",     "fur",     "tail",
     "rescue", "whiskers", "veterinarian", "hamster",  "barking", "breed",    "parrot",  "collar",
     "rabbit", "pony",     "kennel",       "grooming", "purring", "goldfish", "spaniel", "terrier"},
    {"ocean",   "sailing",    "harbour", "waves", "captain", "ship",     "island", "coral",
     "anchor",  "lighthouse", "whales",  "storm", "tide",    "sailor",   "reef",   "voyage",
     "pirates", "dolphins",   "yacht",   "shore", "fishing", "seagulls", "lagoon", "submarine"},
    {"detective",  "murder",        "clues",   "suspect",   "crime",   "alibi",
     "police",     "investigation", "witness", "evidence",  "mystery", "sheriff",
     "forensic",   "killer",        "robbery", "courtroom", "verdict", "fingerprints",
     "conspiracy", "informant",     "ransom",  "sleuth",    "motive",  "jail"},
    {"money",   "investing", "stocks",    "profit",     "budget",   "banker",
     "economy", "savings",   "market",    "wealth",     "taxes",    "salary",
     "debt",    "business",  "finance",   "dividends",  "mortgage", "capital",
     "broker",  "pension",   "inflation", "accounting", "interest", "trade"},
    {"painting",    "sculpture", "canvas",   "gallery",   "brush",    "sketch",
     "watercolour", "portrait",  "museum",   "artist",    "charcoal", "palette",
     "exhibition",  "mural",     "pottery",  "drawing",   "fresco",   "easel",
     "abstract",    "collage",   "ceramics", "engraving", "studio",   "pastels"},
    {"mountain", "hiking", "trail",      "summit",    "glacier",    "backpack",
     "camping",  "tent",   "valley",     "climbing",  "wilderness", "forest",
     "canyon",   "snow",   "cliff",      "campfire",  "waterfall",  "alpine",
     "ridge",    "boots",  "expedition", "avalanche", "ranger",     "altitude"},
    {"engine",  "racing", "motorcycle",  "garage",    "horsepower", "sedan",
     "gearbox", "tyres",  "mechanic",    "truck",     "turbo",      "brakes",
     "chassis", "diesel", "convertible", "dashboard", "throttle",   "highway",
     "exhaust", "clutch", "roadster",    "drifting",  "axle",       "speedway"},
    {"prayer", "faith",    "church", "angels",  "gospel", "meditation", "soul",   "scripture",
     "monk",   "blessing", "temple", "pilgrim", "spirit", "sermon",     "heaven", "worship",
     "hymn",   "saint",    "psalm",  "chapel",  "grace",  "karma",      "ritual", "sacred"},
};

constexpr string_view kContent[] = {
    "This % is all about @ and @, with a touch of @",
    "Expect plenty of @, some @ and a good deal of @ here",
    "The @ stood out most, and the @ was there too, next to @",
    "It leans on @ and @ from start to end",
    "There is @ everywhere in this %, and then @ and @",
    "What you get is @, @ and more @",
};
constexpr string_view kTaste[] = {
    "I came for the # and stayed for the #", "Anyone who cares about # and # knows what I mean",
    "My own taste runs to #, # and #",       "I am always looking for # or #",
    "Give me # and # any day of the week",   "As someone who lives for # and #, I had to try it",
};
constexpr string_view kOne[] = {"I hated it and want my money back", "A complete waste of time",
                                "Terrible, avoid it"};
constexpr string_view kTwo[] = {"It let me down", "Not for me, I would not get it again",
                                "Weak, I expected better"};
constexpr string_view kThree[] = {"It was fine, nothing more",
                                  "An average one, I have mixed feelings",
                                  "Good in places, dull in others"};
constexpr string_view kFour[] = {"I liked it a lot", "Very good, with small faults",
                                 "Well worth it, I would get another"};
constexpr string_view kFive[] = {"I loved it, it is perfect", "Simply the best, I am delighted",
                                 "Outstanding, I recommend it to everyone"};

constexpr DomainVoice kSource = {
    {"paperback", "novel", "hardcover", "page-turner"},
    {", chapter after chapter, as we bookworms say", ", said this reader from her armchair",
     ", right down to the last page of the book", ", just like the blurb on the dust jacket"},
    {"I read this book as an advance reader copy that the publisher sent to our library book club.",
     "The author writes fine prose and I finished every chapter of the novel in bed on my kindle.",
     "Book reviews of mine are also posted on the reading blog, with the usual bookworm "
     "disclaimer.",
     "Five more books by this writer are waiting on my shelf to be read before the library "
     "closes."}};
constexpr DomainVoice kTarget = {
    {"speaker", "amplifier", "headset", "soundbar"},
    {", plugged straight into the amp, as we gearheads say",
     ", said this listener with the volume up", ", right through the bass and the treble",
     ", just like the spec sheet on the box"},
    {"Unboxed the unit, ran the firmware update over bluetooth and paired the speakers in a "
     "minute.",
     "Battery, cable and charging dock are in the box, and the wireless volume knob feels solid.",
     "Audio hardware tested at 48 kHz with the stock driver, subwoofer off, warranty card "
     "registered.",
     "Shipping of the electronics took two days, the plug fits and the remote needs two AAA "
     "cells."}};
constexpr DomainVoice kPlain = {
    {"thing", "piece", "one", "find"}, {"", "", "", ""}, {"", "", "", ""}};

}  // namespace

std::span<const string_view, kWordsPerTopic> topic_words(int topic) {
  return kTopics[topic];
}
std::span<const string_view> content_sentences() {
  return kContent;
}
std::span<const string_view> taste_sentences() {
  return kTaste;
}
std::span<const string_view> verdicts(int stars) {
  const std::span<const string_view> all[] = {kOne, kTwo, kThree, kFour, kFive};
  return all[stars - 1];
}
const DomainVoice& domain_voice(bool target) {
  return target ? kTarget : kSource;
}
const DomainVoice& plain_voice() {
  return kPlain;
}

}  // namespace cfaa


3
x0Placeholder*
dtype0*
shape
:
3
	LeakyRelu	LeakyRelux0*
alpha%š™™>*
T0

NegNegx0*
T0
6
LeakyRelu_1	LeakyReluNeg*
alpha%ÍÌL>*
T0
-
addAddV2	LeakyReluLeakyRelu_1*
T0
"
IdentityIdentityadd*
T0